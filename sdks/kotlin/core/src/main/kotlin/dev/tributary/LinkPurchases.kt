package dev.tributary

import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger

/** A billing SDK of the app, which the app has configured. The README has the lines for each provider. */
public class BillingSdk @JvmOverloads constructor(
    /** How [LinkResult] names it. */
    public val name: String,
    /** Passes on the user id. Calls `done` when the billing SDK has accepted or refused it, on any thread. */
    internal val identify: (userId: String, done: (isAccepted: Boolean) -> Unit) -> Unit,
    /** Sets an attribute of the current user. */
    internal val setAttribute: (name: String, value: String) -> Unit,
    /** The longest value that the billing SDK takes. */
    internal val maxCodeLength: Int = MAX_CODE_LENGTH,
) {
    internal companion object {
        const val MAX_CODE_LENGTH = 64
    }
}

/** The names of the billing SDKs that accepted the user id, and of those that took the code. */
public class LinkResult internal constructor(public val userId: List<String>, public val code: List<String>)

/** Receives the result of `linkPurchases`, on the main thread where there is one. */
public fun interface LinkCallback {
    public fun onResult(result: LinkResult)
}

/** Passes user ids and codes on to billing SDKs. Nothing throws. */
internal class PurchaseLinker(private val platform: Platform) {
    private val calls = AtomicInteger()

    /** What was accepted so far. Passes it on once: when every billing SDK has answered, or after the time-out. */
    private class Progress(private var waiting: Int, private val onEnd: (LinkResult) -> Unit) {
        private var isEnded = false
        private var userId: List<String> = emptyList()
        private var code: List<String> = emptyList()

        @Synchronized fun add(name: String, isAccepted: Boolean, isCodeSet: Boolean) {
            if (isAccepted) userId = userId + name
            if (isCodeSet) code = code + name
            waiting -= 1
            if (waiting == 0) end()
        }

        @Synchronized fun end() {
            if (!isEnded) onEnd(LinkResult(userId, code))
            isEnded = true
        }
    }

    fun link(userId: String, sdks: List<BillingSdk>, code: String?, onEnd: (LinkResult) -> Unit) {
        val call = calls.incrementAndGet()
        if (sdks.isEmpty() || userId.length !in 1..MAX_USER_ID_LENGTH) return onEnd(LinkResult(emptyList(), emptyList()))
        var timeout: Cancel? = null
        val progress = Progress(sdks.size) {
            timeout?.cancel()
            onEnd(it)
        }
        timeout = platform.after(TIMEOUT_MS) { progress.end() }
        for (sdk in sdks) {
            val isAnswered = AtomicBoolean()
            val done = { isAccepted: Boolean ->
                if (isAnswered.compareAndSet(false, true)) {
                    // Of several calls at once only the last sets its code: the attribute is that of the current user.
                    val passed = code?.takeIf { isAccepted && isPassedOn(it, sdk.maxCodeLength) && call == calls.get() }
                    val isCodeSet = passed != null && isDone { sdk.setAttribute(ATTRIBUTE, passed) }
                    progress.add(sdk.name, isAccepted, isCodeSet)
                }
            }
            if (!isDone { sdk.identify(userId, done) }) done(false)
        }
    }

    private fun isDone(run: () -> Unit): Boolean = try {
        run()
        true
    } catch (_: Exception) {
        false
    }

    /** Whether a code is neither an e-mail address nor a name, and short enough. */
    private fun isPassedOn(code: String, maxLength: Int): Boolean =
        code.length in 1..minOf(maxLength, BillingSdk.MAX_CODE_LENGTH) &&
            code.none { it == '@' || it.isWhitespace() || it.isISOControl() }

    private companion object {
        const val ATTRIBUTE = "tributary_code"
        const val MAX_USER_ID_LENGTH = 512
        const val TIMEOUT_MS = 10_000L
    }
}
