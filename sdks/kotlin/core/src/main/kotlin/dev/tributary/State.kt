package dev.tributary

/** A referral that was not answered yet. */
internal class Touch(val referral: Referral, var at: Long) {
    var isCorrected = false

    /** Whether the service refused the time. The code is then sent without one. */
    var isUntimed = false
    val identity get() = referral.identity
}

/** `UNATTRIBUTED`: the service knows the pair; it is sent again after an install is attributed. */
internal enum class Status(val text: String) { PENDING("pending"), UNATTRIBUTED("unattributed"), BOUND("bound") }

internal class User(val id: String, val signature: String?, var at: Long) {
    var status = Status.PENDING
    var isCorrected = false
}

/** The identity of a touch that the service answered, and whether it accepted it. */
internal class AnsweredTouch(val identity: String, val isAccepted: Boolean)

/** Everything that the SDK stores. The document is the same in every SDK. */
internal class State(
    /** The base address that the state belongs to. */
    val host: String,
    /** False after an opt-out, and while the consent is undecided. Everything else that is stored is then empty. */
    var enabled: Boolean,
    val deviceId: String,
    /** The first start of this installation, epoch ms. Changes only if the clock of the device was wrong. */
    var firstOpenAt: Long,
    var isDeferredAnswered: Boolean = false,
    /** Whether the person was not asked yet. Referrals and users then wait in memory. */
    var isUndecided: Boolean = false,
) {
    var isFirstOpenCorrected = false
    var affiliateId: String? = null
    var touches: List<Touch> = emptyList()
    var users: List<User> = emptyList()
    var answered: List<AnsweredTouch> = emptyList()

    /** No request before this instant (`Retry-After`), epoch ms. */
    var notBefore = 0L

    /** How long that pause was at its beginning, ms. A state of an earlier build has none. */
    var pauseMs: Long? = null

    /** Whether the person refused. */
    val isRefused get() = !enabled && !isUndecided

    fun answerTo(identity: String): Boolean? = answered.find { it.identity == identity }?.isAccepted

    /** Marks a touch as answered. */
    fun answer(touch: Touch, isAccepted: Boolean) {
        touches = touches.filter { it.identity != touch.identity }
        val others = answered.filter { it.identity != touch.identity }
        answered = (others + AnsweredTouch(touch.identity, isAccepted)).takeLast(MAX_ANSWERED)
    }

    /**
     * Replaces times of a clock that was wrong and was set right meanwhile, and removes what has waited too long. Returns whether a
     * time was replaced. Corrected times are those of the service.
     */
    fun settleTimes(now: Long): Boolean {
        var isChanged = false
        fun settled(at: Long, isCorrected: Boolean): Long {
            if (isCorrected || (at <= now && (at >= EARLIEST_MS || now < EARLIEST_MS))) return at
            isChanged = true
            return now
        }
        firstOpenAt = settled(firstOpenAt, isFirstOpenCorrected)
        for (touch in touches) touch.at = settled(touch.at, touch.isCorrected)
        for (user in users) user.at = settled(user.at, user.isCorrected)
        touches = touches.filter { now - it.at <= MAX_AGE_MS }
        users = users.filter { it.status == Status.BOUND || now - it.at <= MAX_AGE_MS }
        return isChanged
    }

    fun write(): String = Json.write(
        fields(
            "version" to VERSION,
            "host" to host,
            "enabled" to enabled,
            "isUndecided" to isUndecided.orAbsent(),
            "deviceId" to if (isUndecided) "" else deviceId,
            "firstOpenAt" to firstOpenAt,
            "isFirstOpenCorrected" to isFirstOpenCorrected.orAbsent(),
        ) + mapOf("affiliateId" to affiliateId) + fields(
            "touches" to touches.filter { enabled }.map {
                fields(
                    "claimToken" to it.referral.claimToken,
                    "code" to it.referral.code,
                    "at" to it.at,
                    "isCorrected" to it.isCorrected.orAbsent(),
                    "isUntimed" to it.isUntimed.orAbsent(),
                )
            },
            "users" to users.filter { enabled }.map {
                fields(
                    "id" to it.id,
                    "signature" to it.signature,
                    "at" to it.at,
                    "status" to it.status.text,
                    "isCorrected" to it.isCorrected.orAbsent(),
                )
            },
            "answered" to answered.map { fields("touch" to it.identity, "isAccepted" to it.isAccepted) },
            "isDeferredAnswered" to isDeferredAnswered,
            "notBefore" to notBefore,
            "pauseMs" to pauseMs,
        ),
    )

    companion object {
        /** How many touches and how many users wait at most. */
        const val MAX_WAITING = 5
        const val DAY_MS = 86_400_000L
        private const val VERSION = 1L

        /** No clock that shows an earlier time is right: this SDK is younger. */
        private const val EARLIEST_MS = 1_735_000_000_000L
        private const val MAX_ANSWERED = 10
        private const val MAX_AGE_MS = 90 * DAY_MS

        /** Returns the stored state, or null if it is damaged or of another host. An opt-out counts for every host. */
        fun parse(text: String, host: String, off: (isDeferredAnswered: Boolean, isUndecided: Boolean) -> State): State? = try {
            val fields = Json.parse(text) as Map<*, *>
            when {
                fields["enabled"] == false ->
                    off(fields["isDeferredAnswered"] == true, fields["isUndecided"] == true).apply {
                        (fields["firstOpenAt"] as? Number)?.takeIf { isUndecided }?.let { firstOpenAt = it.toLong() }
                    }
                fields["version"] == VERSION && fields["host"] == host && fields["deviceId"] != "" -> read(fields, host)
                else -> null
            }
        } catch (_: RuntimeException) {
            null
        }

        /** Throws a [RuntimeException] if a field is missing or has another type. */
        private fun read(fields: Map<*, *>, host: String): State {
            val state = State(host, true, fields["deviceId"] as String, time(fields["firstOpenAt"]))
            state.isFirstOpenCorrected = fields["isFirstOpenCorrected"] == true
            state.affiliateId = fields["affiliateId"] as String?
            state.touches = list(fields["touches"]) {
                val referral = Referral(it["claimToken"] as String?, it["code"] as String?)
                Touch(referral, time(it["at"])).apply {
                    isCorrected = it["isCorrected"] == true
                    isUntimed = it["isUntimed"] == true
                }
            }
            state.users = list(fields["users"]) {
                User(it["id"] as String, it["signature"] as String?, time(it["at"])).apply {
                    status = Status.values().first { status -> status.text == it["status"] }
                    isCorrected = it["isCorrected"] == true
                }
            }
            state.answered = list(fields["answered"]) {
                AnsweredTouch(it["touch"] as String, it["isAccepted"] as Boolean)
            }
            state.isDeferredAnswered = fields["isDeferredAnswered"] == true
            state.notBefore = time(fields["notBefore"])
            state.pauseMs = fields["pauseMs"]?.let(::time)
            return state
        }

        private fun time(value: Any?): Long = (value as Number).toLong()

        private fun <T> list(value: Any?, item: (Map<*, *>) -> T): List<T> = (value as List<*>).map { item(it as Map<*, *>) }

        private fun Boolean.orAbsent(): Boolean? = if (this) true else null
    }
}

/**
 * Returns whether the app was installed more than a day before the SDK's first start. The update that added the SDK makes nobody a new
 * user, whom a click of today may have brought.
 */
internal fun isExistingUser(installedAt: Long?, firstOpenAt: Long): Boolean =
    installedAt != null && firstOpenAt - installedAt > State.DAY_MS

/** Returns an object of the fields that are not null. */
internal fun fields(vararg pairs: Pair<String, Any?>): Map<String, Any?> = pairs.filter { it.second != null }.toMap()
