package dev.tributary

import java.io.File
import kotlin.io.path.createTempDirectory

/** The SDK on the JVM, by its public class. */
class JvmRuntime : Runtime {
    private lateinit var sdk: TributarySdk

    override val abilities = listOf("start", "online", "foreground", "deferredOffByDefault")
    override val file: File = File(createTempDirectory("tributary").toFile(), "state/tributary.json")

    override fun platform(): Platform = Platform()

    override fun begin(platform: Platform) {
        sdk = TributarySdk(platform)
    }

    override fun start(apiKey: String, options: TributaryOptions): Boolean =
        sdk.start(apiKey, options, Environment(FileStorage(file)))

    override fun identify(userId: String, signature: String?, onResult: ResultCallback) = sdk.identify(userId, signature, onResult)

    override fun attribute(url: String, onResult: ResultCallback) = sdk.attribute(url, onResult)

    override fun applyCode(code: String, onResult: ResultCallback) = sdk.applyCode(code, onResult)

    override fun attributedAffiliateId(): String? = sdk.attributedAffiliateId()

    override fun reset() = sdk.reset()

    override fun setEnabled(enabled: Boolean) = sdk.setEnabled(enabled)

    /** On the JVM the app reports these events by a call. */
    override fun event(name: String) = sdk.retry()
}
