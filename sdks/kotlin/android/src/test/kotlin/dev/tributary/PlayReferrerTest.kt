package dev.tributary

import android.app.Application
import android.content.ComponentName
import android.content.ContextWrapper
import android.content.Intent
import android.content.ServiceConnection
import com.android.installreferrer.api.InstallReferrerClient
import com.android.installreferrer.api.InstallReferrerStateListener
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowLooper
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

@RunWith(RobolectricTestRunner::class)
@Config(sdk = [34])
class PlayReferrerTest {
    private val app: Application get() = RuntimeEnvironment.getApplication()
    private val token = "11111111-1111-4111-8111-111111111111"
    private val referrer = "claim_token=$token&via=spring"

    /** Asks Google Play like the SDK. Returns a list with the referral, or an empty one without an answer. */
    private fun read(source: PlayReferrer): List<Referral?> {
        val answers = LinkedBlockingQueue<List<Referral?>>()
        source.read { answers.put(listOf(it)) }
        val endAt = System.nanoTime() + 10_000_000_000
        while (System.nanoTime() < endAt) {
            ShadowLooper.idleMainLooper()
            answers.poll()?.let { return it }
            Thread.sleep(1)
        }
        return emptyList()
    }

    @Test
    fun `the referral that a link passed to Google Play is read`() {
        val play = checkNotNull(FakePlay.install(app, referrer))
        val source = PlayReferrer(app)
        assertTrue(source.isPending())
        val referral = read(source).single()
        assertEquals(token, referral?.claimToken)
        assertEquals("spring", referral?.code)
        assertEquals(listOf<String?>(app.packageName), play.requests)
        assertEquals(1, shadowOf(app).unboundServiceConnections.size)
        source.onStored()
        assertFalse(PlayReferrer(app).isPending())
    }

    @Test
    fun `an installation without a link has no referral and is asked about once`() {
        FakePlay.install(app, "utm_source=google-play&utm_medium=organic")
        val source = PlayReferrer(app)
        assertNull(read(source).single())
        source.onStored()
        assertFalse(PlayReferrer(app).isPending())
    }

    @Test
    fun `a device without Google Play has no referral and is asked again at the next start`() {
        FakePlay.install(app, null)
        val source = PlayReferrer(app)
        assertNull(read(source).single())
        source.onStored()
        assertTrue(PlayReferrer(app).isPending())
    }

    @Test
    fun `a Google Play that fails is asked again at the next start`() {
        checkNotNull(FakePlay.install(app, referrer)).isBroken = true
        val source = PlayReferrer(app)
        assertNull(read(source).single())
        source.onStored()
        assertTrue(PlayReferrer(app).isPending())
    }

    /** A Google Play that agrees to bind and then does only what the test says. */
    private class SilentPlay(app: Application) : ContextWrapper(app) {
        val bound = ArrayList<ServiceConnection>()
        val unbound = ArrayList<ServiceConnection>()

        override fun bindService(service: Intent, connection: ServiceConnection, flags: Int): Boolean = bound.add(connection)

        override fun unbindService(connection: ServiceConnection) {
            unbound.add(connection)
        }
    }

    @Test
    fun `a Google Play that never connects is unbound after thirty seconds and asked again at the next start`() {
        val play = SilentPlay(app)
        val source = PlayReferrer(play)
        source.read { source.onStored() }
        ShadowLooper.idleMainLooper(29, TimeUnit.SECONDS)
        assertEquals(emptyList<ServiceConnection>(), play.unbound)
        ShadowLooper.idleMainLooper(1, TimeUnit.SECONDS)
        assertEquals(play.bound, play.unbound)
        assertTrue(PlayReferrer(app).isPending())
    }

    @Test
    fun `a Google Play without a service has no referral, is unbound at once and is asked again at the next start`() {
        val play = SilentPlay(app)
        val source = PlayReferrer(play)
        val answers = ArrayList<Referral?>()
        source.read {
            answers.add(it)
            source.onStored()
        }
        // The tests are compiled with Android 5 as well, and run with Android 14.
        ServiceConnection::class.java.getMethod("onNullBinding", ComponentName::class.java).invoke(play.bound.single(), null)
        assertEquals(listOf<Referral?>(null), answers)
        ShadowLooper.idleMainLooper(60, TimeUnit.SECONDS)
        assertEquals(play.bound, play.unbound)
        assertTrue(PlayReferrer(app).isPending())
    }

    @Test
    fun `Google's own library reads the same referrer from the fake service`() {
        FakePlay.install(app, referrer)
        val client = InstallReferrerClient.newBuilder(app).build()
        val codes = LinkedBlockingQueue<Int>()
        client.startConnection(
            object : InstallReferrerStateListener {
                override fun onInstallReferrerSetupFinished(code: Int) = codes.put(code)

                override fun onInstallReferrerServiceDisconnected() = Unit
            },
        )
        ShadowLooper.idleMainLooper()
        assertEquals(InstallReferrerClient.InstallReferrerResponse.OK, codes.poll())
        assertEquals(referrer, client.installReferrer.installReferrer)
        client.endConnection()
    }
}
