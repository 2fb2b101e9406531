package dev.tributary

import java.util.concurrent.atomic.AtomicInteger

/**
 * The calls of one installation. Nothing throws or blocks. Android apps use the object `Tributary`, which has an instance of
 * this class.
 */
public class TributarySdk(private val platform: Platform) {
    private var log = Log(platform, TributaryOptions())
    private var isStarted = false
    private var earlyCalls: List<(Client) -> Unit> = emptyList()

    /** The last `setEnabled` before the start. */
    private var earlyConsent: Boolean? = null

    /** Creates the client. */
    private var launch = {}

    private val linker = PurchaseLinker(platform)

    /** Set and used on the SDK's thread. */
    private var client: Client? = null

    @Volatile private var affiliateId: String? = null

    @Volatile private var deviceId: String? = null

    /** How many deletions were asked for and not made yet. The affiliate and the device id are null meanwhile. */
    private val deletions = AtomicInteger()

    /**
     * Starts the SDK. Returns false, and logs one line, without a key or a base address. A second call delivers what waits.
     */
    @Synchronized
    public fun start(apiKey: String?, options: TributaryOptions, environment: Environment): Boolean {
        if (isStarted) {
            // There is no client if the start failed.
            run { client?.start(emptyList()) ?: launch() }
            return true
        }
        log = Log(platform, options)
        val key = (apiKey ?: environment.apiKey).orEmpty()
        val host = (options.apiBaseUrl ?: environment.apiBaseUrl).orEmpty().ifEmpty { HOST }.trim().trimEnd('/')
        val problem = when {
            !ADDRESS.containsMatchIn(host) -> "No base address: set apiBaseUrl to the http or https address of your service."
            key.isEmpty() -> "No SDK key: set apiKey to the key of your app (pk_live_…)."
            else -> null
        }
        if (problem != null) {
            log.warn("$problem Nothing is sent.")
            return false
        }
        val storage = options.storage ?: environment.storage
        val deferredMatch = options.deferredMatch ?: environment.deferredMatch
        val referrer = environment.referrer
        val settings = Settings(key, host, storage, deferredMatch, environment.installedAt, log, publish(options)) {
            guard { referrer?.discard() }
        }
        launch = { open(settings, referrer) }
        isStarted = true
        run(launch)
        return true
    }

    /** Binds the app's user id to the attribution. True once it is bound. */
    @JvmOverloads
    public fun identify(userId: String, signature: String? = null, onResult: ResultCallback? = null) {
        call(onResult) { client, end -> client.identify(userId, signature, end) }
    }

    /** Takes the referral of an address (`claim_token`, `via`). True if the service accepted it. */
    @JvmOverloads
    public fun attribute(url: String, onResult: ResultCallback? = null) {
        call(onResult) { client, end -> client.refer(Referral.from(url), false, end) }
    }

    /** Takes a code that a user entered. True if the service knows the code. */
    @JvmOverloads
    public fun applyCode(code: String, onResult: ResultCallback? = null) {
        call(onResult) { client, end -> client.refer(Referral.of(null, code), true, end) }
    }

    /** Returns the affiliate, or null if there is none or the state is not read yet. */
    public fun attributedAffiliateId(): String? = if (deletions.get() > 0) null else affiliateId

    /** Returns the device id, or null without a consent or if the state is not read yet. */
    public fun deviceId(): String? = if (deletions.get() > 0) null else deviceId

    /**
     * Passes the app's user id, and the creator's code as the attribute `tributary_code`, to the billing SDKs of the app. One that
     * fails or does not answer within ten seconds does not stop the others. A code with `@` or spaces, or longer than 64 characters,
     * is not passed on.
     */
    @JvmOverloads
    public fun linkPurchases(userId: String, sdks: List<BillingSdk>, code: String? = null, onResult: LinkCallback? = null) {
        linker.link(userId, sdks, code) { result -> if (onResult != null) platform.deliver { guard { onResult.onResult(result) } } }
    }

    /** Passes on what the SDK knows, for a developer who looks for an error; null before the start. Changes and sends nothing. */
    public fun debugState(onState: DebugCallback) {
        val deliver = { state: DebugState? -> platform.deliver { guard { onState.onState(state) } } }
        if (synchronized(this) { isStarted }) run { deliver(client?.debugState()) } else deliver(null)
    }

    /** Deletes everything that is stored. */
    public fun reset() {
        delete { it.reset() }
    }

    /**
     * The consent. False before the start of a new installation means that it is undecided: nothing is sent, and referrals wait in
     * memory for `setEnabled(true)`. False after the start is a refusal, which deletes everything.
     */
    public fun setEnabled(enabled: Boolean) {
        synchronized(this) {
            if (!isStarted) {
                earlyConsent = enabled
                return
            }
        }
        if (!enabled) return delete { it.setEnabled(false) }
        call(null, true) { client, _ ->
            client.setEnabled(true)
            deviceId = client.deviceId
        }
    }

    /** Tries again at once: the device is connected again, or the app is back in the foreground. */
    public fun retry() {
        if (synchronized(this) { isStarted }) run { client?.retry() }
    }

    private fun open(settings: Settings, source: ReferrerSource?) {
        val referrer = source?.takeIf(::isPending)
        val started = Client(platform, settings, referrer != null)
        client = started
        deviceId = started.deviceId
        val calls = synchronized(this) {
            val consent = earlyConsent?.let { enabled -> { client: Client -> guard { client.setEnabled(enabled) } } }
            (listOfNotNull(consent) + earlyCalls).also {
                earlyCalls = emptyList()
                earlyConsent = null
            }
        }
        started.start(calls)
        deviceId = started.deviceId
        if (started.mayAskReferrer) {
            referrer?.read { referral -> run { if (started.referrerAnswered(referral)) referrer.onStored() } }
        }
    }

    /** A source that fails is asked again at the next start. */
    private fun isPending(source: ReferrerSource): Boolean = try {
        source.isPending()
    } catch (error: Exception) {
        log.warn("The app store cannot be asked for the referrer at this start: $error")
        false
    }

    private fun publish(options: TributaryOptions): (String?) -> Unit {
        var isFirst = true
        return { id ->
            affiliateId = id
            // The first value is the stored one.
            if (id != null && !isFirst) {
                platform.deliver {
                    runCatching { options.onAttribution?.invoke(id) }.onFailure { log.warn("onAttribution threw: $it") }
                }
            }
            isFirst = false
        }
    }

    private fun delete(change: (Client) -> Unit) {
        deletions.incrementAndGet()
        call(null, true) { client, _ ->
            change(client)
            deviceId = client.deviceId
            deletions.decrementAndGet()
        }
    }

    /** Makes a call now, or keeps it until the start and answers false. What concerns deletion and consent is always kept. */
    private fun call(onResult: ResultCallback?, isAlwaysKept: Boolean = false, make: (Client, (Boolean) -> Unit) -> Unit) {
        val end = { result: Boolean -> if (onResult != null) platform.deliver { guard { onResult.onResult(result) } } }
        synchronized(this) {
            if (isStarted) {
                run {
                    try {
                        val started = client
                        if (started != null) {
                            make(started, end)
                        } else {
                            // The start failed. The next one makes the call.
                            synchronized(this) { keep(isAlwaysKept, make) }
                            end(false)
                        }
                    } catch (error: Exception) {
                        end(false)
                        throw error
                    }
                }
                return
            }
            end(false)
            keep(isAlwaysKept, make)
        }
    }

    private fun keep(isAlwaysKept: Boolean, make: (Client, (Boolean) -> Unit) -> Unit) {
        if (!isAlwaysKept && earlyCalls.size >= MAX_CALLS) return
        earlyCalls = earlyCalls + { client -> guard { make(client) {} } }
    }

    private fun run(task: () -> Unit) {
        platform.execute { guard(task) }
    }

    private fun guard(task: () -> Unit) {
        try {
            task()
        } catch (error: Exception) {
            log.warn("A call failed: $error")
        }
    }

    private companion object {
        const val MAX_CALLS = 20
        val ADDRESS = Regex("^https?://[^/]")
    }
}
