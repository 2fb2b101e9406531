package dev.tributary

import android.app.Activity
import android.app.Application
import android.content.Context
import android.net.ConnectivityManager
import android.net.Uri
import org.robolectric.Robolectric
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.shadows.ShadowLooper
import org.robolectric.shadows.ShadowNetwork
import java.io.File

/** The SDK on the classes of Android, by the object `Tributary`. */
class AndroidRuntime : Runtime {
    private val app: Application get() = RuntimeEnvironment.getApplication()
    private val connectivity get() = shadowOf(app.getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager)

    override val abilities = listOf("start", "online", "foreground", "deferredOnByDefault")
    override val file: File get() = File(app.noBackupFilesDir, "tributary.json")

    override fun platform(): Platform = AndroidPlatform()

    override fun begin(platform: Platform) {
        Tributary.installation = Installation(platform)
    }

    override fun start(apiKey: String, options: TributaryOptions): Boolean = Tributary.start(app, apiKey, options)

    override fun identify(userId: String, signature: String?, onResult: ResultCallback) =
        Tributary.identify(userId, signature, onResult)

    override fun attribute(url: String, onResult: ResultCallback) = Tributary.attribute(Uri.parse(url), onResult)

    override fun applyCode(code: String, onResult: ResultCallback) = Tributary.applyCode(code, onResult)

    override fun attributedAffiliateId(): String? = Tributary.attributedAffiliateId()

    override fun reset() = Tributary.reset()

    override fun setEnabled(enabled: Boolean) = Tributary.setEnabled(enabled)

    override fun event(name: String) {
        if (name == "foreground") {
            Robolectric.buildActivity(Activity::class.java).create().start().stop().start().stop()
        } else {
            connectivity.networkCallbacks.forEach { it.onAvailable(ShadowNetwork.newInstance(1)) }
        }
    }

    override fun idle() = ShadowLooper.idleMainLooper()

    override fun setReferrer(text: String?) {
        FakePlay.install(app, text)
    }
}
