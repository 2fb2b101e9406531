package dev.tributary

import android.app.Application
import android.content.ComponentName
import android.content.Intent
import android.content.IntentFilter
import android.content.pm.ApplicationInfo
import android.content.pm.PackageInfo
import android.content.pm.ServiceInfo
import android.os.Binder
import android.os.Bundle
import android.os.Parcel
import org.robolectric.Shadows.shadowOf

/** The service of Google Play that tells an app how it was installed, as documented by Google. */
class FakePlay(private val referrer: String) : Binder() {
    /** The package that each request named. */
    val requests = ArrayList<String?>()

    /** Makes the service answer with an exception. */
    var isBroken = false

    override fun onTransact(code: Int, data: Parcel, reply: Parcel?, flags: Int): Boolean {
        if (code != FIRST_CALL_TRANSACTION) return super.onTransact(code, data, reply, flags)
        data.enforceInterface(INTERFACE)
        val request = if (data.readInt() == 0) null else Bundle.CREATOR.createFromParcel(data)
        synchronized(requests) { requests.add(request?.getString("package_name")) }
        if (isBroken) {
            reply?.writeException(IllegalStateException("Play is broken."))
            return true
        }
        reply?.writeNoException()
        reply?.writeInt(1)
        val answer = Bundle()
        answer.putString("install_referrer", referrer)
        answer.putLong("referrer_click_timestamp_seconds", 1_767_225_600)
        answer.putLong("install_begin_timestamp_seconds", 1_767_225_660)
        answer.writeToParcel(checkNotNull(reply), 1)
        return true
    }

    companion object {
        private const val PLAY = "com.android.vending"
        private const val INTERFACE = "com.google.android.finsky.externalreferrer.IGetInstallReferrerService"
        private const val ACTION = "com.google.android.finsky.BIND_GET_INSTALL_REFERRER_SERVICE"
        private val SERVICE = ComponentName(PLAY, "com.google.android.finsky.externalreferrer.GetInstallReferrerService")

        /** Installs Google Play with this referrer, or a device without Google Play. */
        fun install(app: Application, referrer: String?): FakePlay? {
            val shadow = shadowOf(app)
            if (referrer == null) {
                shadow.declareComponentUnbindable(SERVICE)
                return null
            }
            val play = FakePlay(referrer)
            shadow.setComponentNameAndServiceForBindServiceForIntent(Intent(ACTION).setComponent(SERVICE), SERVICE, play)
            val packages = shadowOf(app.packageManager)
            packages.installPackage(
                PackageInfo().apply {
                    packageName = PLAY
                    @Suppress("DEPRECATION")
                    versionCode = 90_000_000
                    applicationInfo = ApplicationInfo().apply { packageName = PLAY }
                },
            )
            packages.addOrUpdateService(
                ServiceInfo().apply {
                    packageName = PLAY
                    name = SERVICE.className
                    exported = true
                    applicationInfo = ApplicationInfo().apply { packageName = PLAY }
                },
            )
            packages.addIntentFilterForService(SERVICE, IntentFilter(ACTION))
            return play
        }
    }
}
