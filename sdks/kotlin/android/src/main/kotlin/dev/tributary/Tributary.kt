package dev.tributary

import android.content.Context
import android.content.Intent
import android.net.Uri
import kotlin.coroutines.resume
import kotlin.coroutines.suspendCoroutine

/**
 * Attributes the installation and the purchases of its users to affiliates. Nothing throws or blocks. Results come on the
 * main thread. The `await` variants suspend until the result is known.
 */
public object Tributary {
    @Volatile internal var installation: Installation = Installation(AndroidPlatform())

    private val sdk get() = installation.sdk

    /**
     * Starts the SDK. Call it in `Application.onCreate`. The key and the base address default to the manifest's `meta-data`
     * `dev.tributary.API_KEY` and `dev.tributary.API_BASE_URL`. Returns false, and logs one line, if one is missing.
     */
    @JvmStatic
    @JvmOverloads
    public fun start(context: Context, apiKey: String? = null, options: TributaryOptions = TributaryOptions()): Boolean =
        installation.start(context, apiKey, options)

    /** Binds the app's user id to the attribution. True once it is bound. */
    @JvmStatic
    @JvmOverloads
    public fun identify(userId: String, signature: String? = null, onResult: ResultCallback? = null) {
        sdk.identify(userId, signature, onResult)
    }

    /** Binds the app's user id to the attribution. True once it is bound. */
    public suspend fun awaitIdentify(userId: String, signature: String? = null): Boolean =
        await { identify(userId, signature, it) }

    /**
     * Takes the referral of the link that opened an activity. Call it in `onCreate` and `onNewIntent`. An intent that Android
     * delivers again, to an activity that it creates again or from the list of recent apps, is not taken. True if the
     * service accepted the referral.
     */
    @JvmStatic
    @JvmOverloads
    public fun attribute(intent: Intent?, onResult: ResultCallback? = null) {
        attribute(installation.takeLink(intent), onResult)
    }

    /** Takes the referral of an address (`claim_token`, `via`). True if the service accepted it. */
    @JvmStatic
    @JvmOverloads
    public fun attribute(url: Uri?, onResult: ResultCallback? = null) {
        sdk.attribute(url?.toString().orEmpty(), onResult)
    }

    /** Takes the referral of the link that opened an activity, once. True if the service accepted it. */
    public suspend fun awaitAttribute(intent: Intent?): Boolean = await { attribute(intent, it) }

    /** Takes the referral of an address (`claim_token`, `via`). True if the service accepted it. */
    public suspend fun awaitAttribute(url: Uri?): Boolean = await { attribute(url, it) }

    /** Takes a code that a user entered. True if the service knows the code. */
    @JvmStatic
    @JvmOverloads
    public fun applyCode(code: String, onResult: ResultCallback? = null) {
        sdk.applyCode(code, onResult)
    }

    /** Takes a code that a user entered. True if the service knows the code. */
    public suspend fun awaitApplyCode(code: String): Boolean = await { applyCode(code, it) }

    /** Returns the affiliate, or null if there is none or the state is not read yet. */
    @JvmStatic
    public fun attributedAffiliateId(): String? = sdk.attributedAffiliateId()

    /** Returns the device id, or null without a consent or if the state is not read yet. */
    @JvmStatic
    public fun deviceId(): String? = sdk.deviceId()

    /**
     * Passes the app's user id, and the creator's code as the attribute `tributary_code`, to the billing SDKs of the app. Call it on
     * the main thread. One that fails or does not answer within ten seconds does not stop the others. A code with `@` or spaces, or
     * longer than 64 characters, is not passed on.
     */
    @JvmStatic
    @JvmOverloads
    public fun linkPurchases(userId: String, sdks: List<BillingSdk>, code: String? = null, onResult: LinkCallback? = null) {
        sdk.linkPurchases(userId, sdks, code, onResult)
    }

    /** Passes on what the SDK knows, for a developer who looks for an error; null before the start. Changes and sends nothing. */
    @JvmStatic
    public fun debugState(onState: DebugCallback) {
        sdk.debugState(onState)
    }

    /** Deletes everything that is stored. */
    @JvmStatic
    public fun reset() {
        sdk.reset()
    }

    /**
     * The consent. False before the start of a new installation means that it is undecided: nothing is sent, and referrals wait in
     * memory for `setEnabled(true)`. False after the start is a refusal, which deletes everything.
     */
    @JvmStatic
    public fun setEnabled(enabled: Boolean) {
        sdk.setEnabled(enabled)
    }

    private suspend fun await(call: (ResultCallback) -> Unit): Boolean =
        suspendCoroutine { continuation -> call { continuation.resume(it) } }
}
