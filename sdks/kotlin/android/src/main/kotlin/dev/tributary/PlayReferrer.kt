package dev.tributary

import android.content.ComponentName
import android.content.Context
import android.content.Intent
import android.content.ServiceConnection
import android.os.Bundle
import android.os.Handler
import android.os.IBinder
import android.os.Looper
import android.os.Parcel
import java.io.File
import java.util.concurrent.atomic.AtomicBoolean

/**
 * Asks Google Play once how the app was installed, by the documented service that Google's own library uses. A marker file
 * survives a reset: Play would otherwise attribute the next user of the device to the link of the first.
 */
internal class PlayReferrer(private val context: Context) : ReferrerSource {
    private val marker by lazy { File(context.noBackupFilesDir, "tributary.referrer") }

    @Volatile private var isAnswered = false

    override fun isPending(): Boolean = !marker.exists()

    override fun onStored() {
        if (isAnswered) discard()
    }

    override fun discard() {
        runCatching { marker.createNewFile() }
    }

    override fun read(onResult: (Referral?) -> Unit) = Connection(onResult).open()

    private inner class Connection(private val onResult: (Referral?) -> Unit) : ServiceConnection {
        private val main = Handler(Looper.getMainLooper())
        private val isClosed = AtomicBoolean()
        private val timeout = Runnable { close() }

        fun open() {
            val intent = Intent("com.google.android.finsky.BIND_GET_INSTALL_REFERRER_SERVICE").setComponent(
                ComponentName("com.android.vending", "com.google.android.finsky.externalreferrer.GetInstallReferrerService"),
            )
            main.postDelayed(timeout, TIMEOUT_MS)
            // Without Google Play, or without its permission, there is nothing to bind to.
            val isBound = runCatching { context.bindService(intent, this, Context.BIND_AUTO_CREATE) }.getOrDefault(false)
            if (!isBound) end(null)
        }

        override fun onServiceConnected(name: ComponentName?, service: IBinder) {
            val thread = Thread { end(runCatching { query(service) }) }
            thread.isDaemon = true
            thread.start()
        }

        /** Overrides the method that `ServiceConnection` has since Android 9: the SDK is compiled with Android 5. */
        @Suppress("unused")
        fun onNullBinding(@Suppress("UNUSED_PARAMETER") name: ComponentName?) = end(null)

        override fun onServiceDisconnected(name: ComponentName?) = Unit

        /** Passes on the answer of Play, or null without one. */
        private fun end(referrer: Result<String?>?) {
            if (!close()) return
            isAnswered = referrer?.isSuccess == true
            onResult(referrer?.getOrNull()?.let(Referral::fromQuery))
        }

        /** Unbinds once, also if Play never connects. Returns whether the connection was open. */
        private fun close(): Boolean {
            if (!isClosed.compareAndSet(false, true)) return false
            main.removeCallbacks(timeout)
            runCatching { context.unbindService(this) }
            return true
        }
    }

    /** Returns the query string that the link passed to Play, or null if there is none. */
    private fun query(service: IBinder): String? {
        val request = Parcel.obtain()
        val reply = Parcel.obtain()
        try {
            request.writeInterfaceToken("com.google.android.finsky.externalreferrer.IGetInstallReferrerService")
            request.writeInt(1)
            Bundle().apply { putString("package_name", context.packageName) }.writeToParcel(request, 0)
            service.transact(IBinder.FIRST_CALL_TRANSACTION, request, reply, 0)
            reply.readException()
            return if (reply.readInt() == 0) null else Bundle.CREATOR.createFromParcel(reply).getString("install_referrer")
        } finally {
            reply.recycle()
            request.recycle()
        }
    }

    private companion object {
        /** Longer than the client waits: a referrer that comes late is used. */
        const val TIMEOUT_MS = 30_000L
    }
}
