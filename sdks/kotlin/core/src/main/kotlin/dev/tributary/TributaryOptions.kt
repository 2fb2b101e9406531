package dev.tributary

/** Options of the SDK. Each has a default. */
public class TributaryOptions @JvmOverloads constructor(
    /** The base address of the service, if it is not the one built into this release. */
    public val apiBaseUrl: String? = null,
    /** Whether a first open without a referral is matched by the address of the device. On by default on Android. */
    public val deferredMatch: Boolean? = null,
    /** Where the state is kept, if not in a file of the platform. */
    public val storage: Storage? = null,
    /** Whether to log each answer. */
    public val debug: Boolean = false,
    /** Takes the log lines instead of the platform's log, on any thread. */
    public val logger: ((String) -> Unit)? = null,
    /** Called when the installation is attributed to an affiliate, on the main thread where there is one. */
    public val onAttribution: ((String) -> Unit)? = null,
)

/** What the platform supplies where the app says nothing. */
public class Environment @JvmOverloads constructor(
    public val storage: Storage,
    public val apiKey: String? = null,
    public val apiBaseUrl: String? = null,
    public val deferredMatch: Boolean = false,
    public val referrer: ReferrerSource? = null,
    /** When the app was installed, epoch ms, if that is known. An update of the app does not change it. */
    public val installedAt: Long? = null,
)

/** Asks the app store once how the app was installed. Called on the SDK's thread. */
public interface ReferrerSource {
    /** Whether the app store was not asked yet. */
    public fun isPending(): Boolean

    /** Asks the app store. Calls `onResult` at most once, on any thread. */
    public fun read(onResult: (Referral?) -> Unit)

    /** Called when the result is stored. */
    public fun onStored()

    /** Called at a reset: the next user of the device has not come from the link of the person who installed the app. */
    public fun discard()
}

/** Receives the result of a call, on the main thread where there is one. */
public fun interface ResultCallback {
    public fun onResult(isSuccess: Boolean)
}

/** Writes log lines. Never throws. */
internal class Log(private val platform: Platform, private val options: TributaryOptions) {
    fun warn(line: String) {
        runCatching { options.logger?.invoke("[tributary] $line") ?: platform.log(line) }
    }

    fun debug(line: () -> String) {
        if (options.debug) warn(line())
    }
}
