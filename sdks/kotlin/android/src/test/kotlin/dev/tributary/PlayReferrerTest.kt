package dev.tributary

import android.app.Application
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
