package dev.tributary

import android.app.Activity
import android.app.Application
import android.content.Context
import android.content.Intent
import android.content.pm.PackageManager
import android.net.ConnectivityManager
import android.net.Network
import android.net.NetworkCapabilities
import android.net.NetworkRequest
import android.net.Uri
import android.os.Bundle
import android.os.Handler
import android.os.Looper
import android.util.Log
import java.io.File
import java.util.Collections
import java.util.WeakHashMap

/** The main thread and the log of Android. */
internal class AndroidPlatform : Platform("android") {
    private val main = Handler(Looper.getMainLooper())

    override fun deliver(run: Runnable) {
        main.post(run)
    }

    override fun log(line: String) {
        Log.w("tributary", line)
    }
}

/** The SDK of one process of the app. */
internal class Installation(platform: Platform) {
    val sdk = TributarySdk(platform)
    private var isObserved = false

    /** The intents that were taken, or that their activity got in an earlier life. */
    private val taken = Collections.synchronizedMap(WeakHashMap<Intent, Boolean>())

    fun start(context: Context, apiKey: String?, options: TributaryOptions): Boolean {
        val app = context.applicationContext ?: context
        val manifest = metaData(app)
        val environment = Environment(
            storage = FileStorage { File(app.noBackupFilesDir, "tributary.json") },
            apiKey = manifest?.getString("dev.tributary.API_KEY"),
            apiBaseUrl = manifest?.getString("dev.tributary.API_BASE_URL"),
            deferredMatch = true,
            referrer = PlayReferrer(app),
            installedAt = installedAt(app),
        )
        if (!sdk.start(apiKey, options, environment)) return false
        if (!isObserved) observe(app)
        isObserved = true
        return true
    }

    /** Returns the link of an intent, or null if the intent has none or Android delivers it again. */
    fun takeLink(intent: Intent?): Uri? {
        if (intent == null || taken.put(intent, true) != null) return null
        val isFromRecentApps = intent.flags and Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY != 0
        return if (isFromRecentApps) null else intent.data
    }

    private fun metaData(app: Context): Bundle? = try {
        app.packageManager.getApplicationInfo(app.packageName, PackageManager.GET_META_DATA).metaData
    } catch (_: PackageManager.NameNotFoundException) {
        null
    }

    private fun installedAt(app: Context): Long? = try {
        app.packageManager.getPackageInfo(app.packageName, 0).firstInstallTime.takeIf { it > 0 }
    } catch (_: PackageManager.NameNotFoundException) {
        null
    }

    /** Tries again when the device is connected, and when the app comes to the foreground. */
    private fun observe(app: Context) {
        val activities = Activities(onForeground = sdk::retry, onCreatedAgain = { taken[it] = true })
        (app as? Application)?.registerActivityLifecycleCallbacks(activities)
        val request = NetworkRequest.Builder().addCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET).build()
        val onConnection = object : ConnectivityManager.NetworkCallback() {
            override fun onAvailable(network: Network) {
                sdk.retry()
            }
        }
        try {
            val connectivity = app.getSystemService(Context.CONNECTIVITY_SERVICE) as? ConnectivityManager
            connectivity?.registerNetworkCallback(request, onConnection)
        } catch (_: RuntimeException) {
            // The app removed the permission, or has too many callbacks. Starts, calls and the foreground try again, too.
        }
    }
}

private class Activities(
    private val onForeground: () -> Unit,
    private val onCreatedAgain: (Intent) -> Unit,
) : Application.ActivityLifecycleCallbacks {
    private var started = 0

    override fun onActivityStarted(activity: Activity) {
        started += 1
        if (started == 1) onForeground()
    }

    override fun onActivityStopped(activity: Activity) {
        started = maxOf(0, started - 1)
    }

    override fun onActivityCreated(activity: Activity, state: Bundle?) {
        if (state != null) activity.intent?.let(onCreatedAgain)
    }

    override fun onActivityResumed(activity: Activity) = Unit

    override fun onActivityPaused(activity: Activity) = Unit

    override fun onActivitySaveInstanceState(activity: Activity, state: Bundle) = Unit

    override fun onActivityDestroyed(activity: Activity) = Unit
}
