package dev.tributary

/** What a client works with. */
internal class Settings(
    val apiKey: String,
    /** The base address of the service, without a slash at its end. */
    val host: String,
    val storage: Storage,
    val deferredMatch: Boolean,
    /** When the app was installed, epoch ms. */
    val installedAt: Long?,
    val log: Log,
    /** Called on the SDK's thread when the affiliate changes. */
    val onAffiliate: (affiliateId: String?) -> Unit,
    /** Called on the SDK's thread when everything is deleted because another person uses the device. */
    val onReset: () -> Unit,
)

/**
 * Delivers the referrals and users of one installation, one request at a time. The rules are those of SPEC.md. Runs on the
 * SDK's thread only.
 */
internal class Client(private val platform: Platform, private val settings: Settings, awaitsReferrer: Boolean) {
    /** A request in flight. */
    private class Request {
        var cancelTimeout: Cancel? = null
        var cancelPost: Cancel? = null

        fun cancel() {
            cancelTimeout?.cancel()
            cancelPost?.cancel()
        }
    }

    /** A call that waits for its result; `get` returns null while there is none. */
    private class Waiter(val get: () -> Boolean?, val onResult: (Boolean) -> Unit)

    private sealed class Job {
        object Pause : Job()

        /** A request to send next. A deferred match has neither a touch nor a user. */
        class Send(val touch: Touch? = null, val user: User? = null) : Job() {
            /** How [DebugState] names it. */
            val kind get() = when {
                user != null -> "user"
                touch == null -> "deferred"
                touch.referral.claimToken != null -> "token"
                else -> "code"
            }
        }
    }

    private val log = settings.log

    /** False if the storage failed: it may hold a state that must not be overwritten. */
    private var isStorageUsable = true

    /** Whether what is stored was deleted by a call: every write then tries the storage, also after it failed. */
    private var isReplaced = false

    /** Whether this installation has no state yet. */
    private var isFresh = false
    private var state = load()
    private var deferredMatch = settings.deferredMatch
    private var isDelayOver = false
    private var isReferrerAwaited = awaitsReferrer && !state.isRefused

    /** False after a reset or an opt-out. */
    private var isReferrerWanted = true
    private var isMisconfigured = false
    private var isHeld = false
    private var failures = 0
    private var failedAt = 0L

    /** Whether the log names an answer that was not of the service. */
    private var isReported = false
    private var request: Request? = null

    /** Whether the next request waits for the referrer or for the time of the deferred match. */
    private var isPausing = false
    private var cancelRetry: Cancel? = null

    /** When `cancelRetry` is due, epoch ms. */
    private var retryAt = 0L

    /** When the deferred match may be asked for, epoch ms. */
    private val deferredAt = platform.now() + DEFERRED_DELAY_MS
    private val referrerAt = platform.now() + REFERRER_DELAY_MS

    /** The last answers of this process. */
    private var answers: List<DebugState.Answered> = emptyList()
    private var waiters: List<Waiter> = emptyList()

    /** Whether the app store may be asked for the referrer: not after a refusal. */
    val mayAskReferrer get() = !state.isRefused

    /** The device id, or null without a consent. */
    val deviceId get() = state.deviceId.takeIf { state.enabled }

    init {
        settings.onAffiliate(state.affiliateId)
        if (deferredMatch) platform.after(DEFERRED_DELAY_MS) { resumeAfter { isDelayOver = true } }
        if (isReferrerAwaited) platform.after(REFERRER_DELAY_MS) { resumeAfter { isReferrerAwaited = false } }
    }

    /** Makes the calls that came before the start, and begins to deliver. */
    fun start(calls: List<(Client) -> Unit>) {
        isMisconfigured = false
        // Nothing is stored or sent until every call is queued: touches go first, and an opt-out holds for this start.
        isHeld = true
        for (call in calls) call(this)
        isHeld = false
        if (state.enabled || isReplaced) save()
        retry()
    }

    /** Tries again: the device is connected again, or the app is back in the foreground. */
    fun retry() {
        val wait = failedAt + EVENT_DELAY_MS - platform.now()
        // These events come often, also while the service is down. After the clock was set back nothing is known.
        if (failures > 0 && wait in 1..EVENT_DELAY_MS) retryAfter(wait) else flush()
    }

    /** Takes what the app store says about the installation. Returns whether it need not be asked again. */
    fun referrerAnswered(referral: Referral?): Boolean {
        if (!isReferrerWanted) return false
        if (referral != null) addTouch(referral)
        isReferrerAwaited = false
        flush()
        // Until the consent the referrer is in memory only.
        return isStorageUsable && state.enabled
    }

    fun identify(userId: String, signature: String?, onResult: (Boolean) -> Unit) {
        if (userId.isEmpty() || userId.length > MAX_USER_ID_LENGTH) {
            log.warn("identify: the user id must be a text of 1 to 512 characters.")
            return onResult(false)
        }
        if (state.isRefused) return onResult(false)
        val known = state.users.find { it.id == userId }
        if (known?.status == Status.BOUND) return onResult(true)
        val isNew = known == null || known.signature != signature
        if (!isNew && known?.status == Status.UNATTRIBUTED) return onResult(false)
        if (isNew) {
            val user = User(userId, signature, platform.now())
            state.users = (state.users.filter { it.id != userId } + user).takeLast(State.MAX_WAITING)
            save()
        }
        deliver(isNew)
        await(onResult) {
            when (state.users.find { it.id == userId }?.status) {
                Status.PENDING -> null
                Status.BOUND -> true
                else -> false
            }
        }
    }

    /** Delivers a referral. A referral that was refused is asked for again only if a user enters it. */
    fun refer(referral: Referral?, isEntered: Boolean, onResult: (Boolean) -> Unit) {
        if (referral == null || state.isRefused) return onResult(false)
        val identity = referral.identity
        if (isEntered && state.answerTo(identity) == false)
            state.answered = state.answered.filter { it.identity != identity }
        deliver(addTouch(referral))
        await(onResult) {
            if (state.touches.any { it.identity == identity }) null else state.answerTo(identity) ?: false
        }
    }

    fun reset() {
        // The next person on this device has not come from a link of this one.
        settings.onReset()
        replaceState(state.enabled, true, state.isUndecided)
    }

    /**
     * True is the consent. False before the start of a new installation means that the consent is undecided: referrals and users
     * wait in memory. Otherwise it is a refusal, which deletes everything.
     */
    fun setEnabled(enabled: Boolean) {
        if (enabled && state.isUndecided) {
            state.enabled = true
            state.isUndecided = false
            save()
            flush()
        } else if (isHeld && !enabled && (isFresh || state.isUndecided)) {
            // Before the start this is no decision of the person.
            state.enabled = false
            state.isUndecided = true
            save()
        } else if (state.enabled != enabled || state.isUndecided) {
            replaceState(enabled, state.isDeferredAnswered)
        }
    }

    fun debugState(): DebugState {
        val now = platform.now()
        val touches = state.touches.map { Job.Send(it) to it.at }
        val deferred = if (!state.isRefused && needsDeferred(now)) listOf(Job.Send() to null) else emptyList()
        val users = state.users.filter { it.status == Status.PENDING }.map { Job.Send(user = it) to it.at }
        val queued = (touches + deferred + users).map { (job, at) ->
            DebugState.Queued(job.kind, at?.let { maxOf(0, now - it) / 1000 })
        }
        val tryAt = when {
            queued.isEmpty() || request != null -> null
            cancelRetry != null -> retryAt
            isPausing -> if (isReferrerAwaited) referrerAt else deferredAt
            else -> null
        }
        return DebugState(
            sdk = sdk,
            host = owner,
            consent = if (state.enabled) "granted" else if (state.isUndecided) "undecided" else "refused",
            deviceId = deviceId?.take(DEVICE_ID_LENGTH),
            isStored = isStorageUsable,
            attribution = if (state.affiliateId != null) "attributed" else if (queued.isEmpty()) "none" else "unknown",
            hasUser = state.users.isNotEmpty(),
            queued = queued,
            answers = answers,
            nextTryInSeconds = tryAt?.let { maxOf(0, it - now + 999) / 1000 },
        )
    }

    private val sdk get() = "${platform.name}/$VERSION"

    /** What the state belongs to. A live key reports everything anew: what a test key reported never earns. */
    private val owner: String
        get() = if (settings.apiKey.startsWith("pk_test_")) "${settings.host}#test" else settings.host

    private fun emptyState(enabled: Boolean, isDeferredAnswered: Boolean = false, isUndecided: Boolean = false): State {
        val id = if (enabled || isUndecided) platform.newId() else ""
        return State(owner, enabled, id, platform.now(), isDeferredAnswered, isUndecided)
    }

    private fun load(): State {
        val text = try {
            settings.storage.read()
        } catch (error: Exception) {
            isStorageUsable = false
            log.debug { "The storage cannot be read. The state lives in memory only: $error" }
            null
        }
        val stored = text?.let { State.parse(it, owner) { isAnswered, isUndecided -> emptyState(false, isAnswered, isUndecided) } }
        isFresh = stored == null
        return stored ?: emptyState(true, isDeferredAnswered = isExistingUser(settings.installedAt, platform.now()))
    }

    private fun save() {
        store(state.write())
    }

    private fun store(text: String?) {
        if (!isStorageUsable && !isReplaced) return
        try {
            if (text == null) settings.storage.delete() else settings.storage.write(text)
        } catch (error: Exception) {
            isStorageUsable = false
            log.debug { "The storage cannot be written. The state lives in memory only: $error" }
        }
    }

    /** Deletes everything but the consent and whether the deferred match is done. */
    private fun replaceState(enabled: Boolean, isDeferredAnswered: Boolean, isUndecided: Boolean = false) {
        deferredMatch = false
        isReplaced = true
        isReferrerAwaited = false
        isReferrerWanted = false
        isPausing = false
        request?.cancel()
        request = null
        cancelRetry?.cancel()
        cancelRetry = null
        failures = 0
        state = emptyState(enabled, isDeferredAnswered, isUndecided)
        store(if (enabled && !settings.deferredMatch) null else state.write())
        settings.onAffiliate(null)
        settle()
    }

    /** Returns whether the touch is new. */
    private fun addTouch(referral: Referral): Boolean {
        val identity = referral.identity
        if (state.touches.any { it.identity == identity } || state.answerTo(identity) != null) return false
        state.touches = (state.touches + Touch(referral, platform.now())).takeLast(State.MAX_WAITING)
        save()
        return true
    }

    /** Delivers what a call added. A call that added nothing does not shorten the wait after a failure. */
    private fun deliver(isNew: Boolean) {
        if (isNew || cancelRetry == null) flush()
    }

    private fun flush() {
        cancelRetry?.cancel()
        cancelRetry = null
        if (request == null && !isHeld) next()
    }

    private fun resumeAfter(change: () -> Unit) {
        change()
        if (isPausing) next()
    }

    private fun retryAfter(ms: Long) {
        cancelRetry?.cancel()
        retryAt = platform.now() + ms
        cancelRetry = platform.after(ms) {
            cancelRetry = null
            flush()
        }
    }

    /** Sends the next request if there is one. */
    private fun next() {
        val job = nextJob()
        isPausing = job === Job.Pause
        if (job is Job.Send) perform(job)
        settle()
    }

    private fun nextJob(): Job? {
        val now = platform.now()
        if (!state.enabled || isMisconfigured) return null
        if (state.settleTimes(now)) save()
        val user = state.users.find { it.status == Status.PENDING }
        val touch = state.touches.firstOrNull()
        val needsDeferred = needsDeferred(now)
        if (touch == null && !needsDeferred && user == null) return null
        val pause = state.notBefore - now
        // One that is longer than at its beginning is none: the clock was set back.
        if (pause in 1..minOf(state.pauseMs ?: State.DAY_MS, State.DAY_MS)) {
            // Devices that received the same time do not come all at once.
            retryAfter((pause * (1 + platform.random() / 2)).toLong())
            return null
        }
        return when {
            touch != null -> Job.Send(touch)
            isReferrerAwaited || (needsDeferred && !isDelayOver) -> Job.Pause
            needsDeferred -> Job.Send()
            else -> Job.Send(user = user)
        }
    }

    /** Whether a first open without a referral is to be matched by address. */
    private fun needsDeferred(now: Long): Boolean =
        // A state that can't be kept may not be that of a first open.
        isStorageUsable &&
            deferredMatch &&
            !state.isDeferredAnswered &&
            state.affiliateId == null &&
            state.answered.isEmpty() &&
            // A corrected first open is in the time of the service, which the device's clock does not show.
            (state.isFirstOpenCorrected || now - state.firstOpenAt <= State.DAY_MS)

    private fun perform(job: Job.Send) {
        val (touch, user) = job.touch to job.user
        val path = if (user == null) "install" else "identify"
        val common = fields("deviceId" to state.deviceId, "acceptUnattributed" to true, "sdk" to sdk)
        val body = common + if (user != null) {
            fields("customerUserId" to user.id, "identifiedAt" to user.at, "signature" to user.signature)
        } else {
            fields(
                "firstOpenAt" to state.firstOpenAt,
                "claimToken" to touch?.referral?.claimToken,
                "affiliateCode" to touch?.referral?.code,
                "codeEnteredAt" to touch?.takeIf { it.referral.code != null && !it.isUntimed }?.at,
                "deferred" to if (touch == null) true else null,
            )
        }
        val current = Request()
        request = current
        current.cancelTimeout = platform.after(HttpPost.TIMEOUT_MS.toLong()) {
            current.cancelPost?.cancel()
            onAnswer(current, job, path) { Answer.Failed("time-out") }
        }
        current.cancelPost = platform.post("${settings.host}/sdk/$path", settings.apiKey, Json.write(body)) { result ->
            platform.execute {
                onAnswer(current, job, path) {
                    result.fold({ Answer.of(it, platform.now()) }, { Answer.Failed(it) })
                }
            }
        }
    }

    private fun onAnswer(current: Request, job: Job.Send, path: String, read: () -> Answer) {
        // An answer after a reset counts for nothing.
        if (request !== current) return
        request = null
        current.cancelTimeout?.cancel()
        val answer = read()
        log.debug { "$path: $answer" }
        val code = answer.code?.takeIf(PUBLIC_CODE::matches)
        answers = (answers + DebugState.Answered(job.kind, answer.outcome, answer.status, code)).takeLast(MAX_ANSWERS)
        when (answer) {
            is Answer.Verdict -> {
                failures = 0
                if (job.user != null) applyToUser(job.user, answer) else applyToTouch(job.touch, answer)
                save()
                next()
            }
            is Answer.Misconfigured -> {
                isMisconfigured = true
                log.warn(
                    "The service answered ${answer.status}. Check the SDK key and the base address. " +
                        "Nothing is sent until the next start.",
                )
                settle()
            }
            is Answer.Failed -> {
                failures += 1
                failedAt = platform.now()
                if (answer.isStrange && !isReported) {
                    isReported = true
                    log.warn("Something answered ${answer.reason}: check the base address.")
                }
                if (answer.afterMs > 0) {
                    state.notBefore = failedAt + answer.afterMs
                    state.pauseMs = answer.afterMs
                    save()
                }
                val factor = 1 + platform.random() / 2
                val wait = if (failures < TRIES) 1000L shl failures else LONG_WAIT_MS
                retryAfter(Math.max(wait * (factor - 0.5), answer.afterMs * factor).toLong())
                settle()
            }
        }
    }

    private fun applyToTouch(touch: Touch?, answer: Answer.Verdict) {
        val clockErrorMs = answer.clockErrorOf("firstOpenAt")
        if (clockErrorMs != 0L && !state.isFirstOpenCorrected) {
            state.firstOpenAt += clockErrorMs
            state.isFirstOpenCorrected = true
        } else if (touch != null) {
            val codeErrorMs = answer.clockErrorOf("codeEnteredAt")
            if (codeErrorMs != 0L && !touch.isCorrected) {
                touch.at += codeErrorMs
                touch.isCorrected = true
            } else if (answer.isRefused("codeEnteredAt") && !touch.isUntimed) {
                // Without its time the code counts from the request, which is better than not at all.
                touch.isUntimed = true
            } else {
                state.answer(touch, answer.isAttributed && !answer.isUnknownCode)
            }
        } else {
            state.isDeferredAnswered = true
        }
        if (!answer.isAttributed) return
        for (user in state.users) if (user.status == Status.UNATTRIBUTED) user.status = Status.PENDING
        attributed(answer.affiliateId)
    }

    private fun applyToUser(sent: User, answer: Answer.Verdict) {
        val user = state.users.find { it.id == sent.id } ?: return
        val clockErrorMs = answer.clockErrorOf("identifiedAt")
        if (clockErrorMs != 0L && !user.isCorrected) {
            user.at += clockErrorMs
            user.isCorrected = true
        } else if (answer.isAttributed) {
            user.status = Status.BOUND
            // The device keeps its own attribution.
            if (state.affiliateId == null) attributed(answer.affiliateId)
        } else if (answer.isSuccess || answer.code == "no_attribution") {
            user.status = Status.UNATTRIBUTED
        } else if (user.signature == sent.signature) {
            // Not a user who came with another signature meanwhile, who is sent next.
            state.users = state.users.filter { it !== user }
            log.warn("identify: the service refused the user id (${answer.code}).")
        }
    }

    private fun attributed(affiliateId: String?) {
        if (affiliateId == null || state.affiliateId == affiliateId) return
        state.affiliateId = affiliateId
        settings.onAffiliate(affiliateId)
    }

    /** Passes on the result as soon as there is one, or false if nothing more is being sent. */
    private fun await(onResult: (Boolean) -> Unit, get: () -> Boolean?) {
        waiters = waiters + Waiter(get, onResult)
        settle()
    }

    private fun settle() {
        val isRunning = request != null || isPausing
        waiters = waiters.filter { waiter ->
            val result = waiter.get() ?: if (isRunning) null else false
            if (result != null) waiter.onResult(result)
            result == null
        }
    }

    private companion object {
        /** After so many failures in a row the waits are long. */
        const val TRIES = 6
        const val LONG_WAIT_MS = 600_000L

        /** How long after a failure a start, a connection or the foreground waits. */
        const val EVENT_DELAY_MS = 5_000L
        const val DEFERRED_DELAY_MS = 2_000L
        const val REFERRER_DELAY_MS = 5_000L
        const val MAX_USER_ID_LENGTH = 512

        /** What [DebugState] shows of a device id, of the answers and of their codes. */
        const val DEVICE_ID_LENGTH = 8
        const val MAX_ANSWERS = 10
        val PUBLIC_CODE = Regex("[a-z_]{1,64}")
    }
}
