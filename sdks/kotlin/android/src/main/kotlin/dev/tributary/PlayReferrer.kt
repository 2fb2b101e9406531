package dev.tributary

import android.content.ComponentName
import android.content.Context
import android.content.Intent
import android.content.ServiceConnection
import android.os.Bundle
import android.os.IBinder
import android.os.Parcel
import java.io.File

/**
 * Asks Google Play once how the app was installed, by the documented service that Google's own library uses. A marker file
 * survives a reset: Play would otherwise attribute the next user of the device to the link of the first.
 */
internal class PlayReferrer(private val context: Context) : ReferrerSource {
    private val marker by lazy { File(context.noBackupFilesDir, "tributary.referrer") }

    @Volatile private var isAnswered = false

    override fun isPending(): Boolean = !marker.exists()

    override fun onStored() {
        if (isAnswered) runCatching { marker.createNewFile() }
    }

    override fun read(onResult: (Referral?) -> Unit) {
        val connection = object : ServiceConnection {
            override fun onServiceConnected(name: ComponentName?, service: IBinder) {
                val thread = Thread {
                    val referrer = runCatching { query(service) }
                    isAnswered = referrer.isSuccess
                    unbind(this)
                    onResult(referrer.getOrNull()?.let(Referral::fromQuery))
                }
                thread.isDaemon = true
                thread.start()
            }

            override fun onServiceDisconnected(name: ComponentName?) = Unit
        }
        val intent = Intent("com.google.android.finsky.BIND_GET_INSTALL_REFERRER_SERVICE")
            .setComponent(ComponentName("com.android.vending", "com.google.android.finsky.externalreferrer.GetInstallReferrerService"))
        // Without Google Play, or without its permission, there is nothing to bind to.
        val isBound = runCatching { context.bindService(intent, connection, Context.BIND_AUTO_CREATE) }.getOrDefault(false)
        if (isBound) return
        unbind(connection)
        onResult(null)
    }

    private fun unbind(connection: ServiceConnection) {
        runCatching { context.unbindService(connection) }
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
}
