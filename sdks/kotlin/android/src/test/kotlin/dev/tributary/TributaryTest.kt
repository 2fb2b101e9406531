package dev.tributary

import android.app.Activity
import android.app.Application
import android.content.Intent
import android.net.Uri
import android.os.Bundle
import android.os.Looper
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertSame
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowLog
import java.io.File
import java.util.concurrent.LinkedBlockingQueue
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine

/** The object `Tributary` with its own clock and threads. */
@RunWith(RobolectricTestRunner::class)
@Config(sdk = [34])
class TributaryTest {
    private val app: Application get() = RuntimeEnvironment.getApplication()
    private val service = FakeService()
    private val url = service.url
    private val bodies = service.bodies

    @Before
    fun begin() {
        FakePlay.install(app, null)
        newProcess()
    }

    @After
    fun end() = service.close()

    private fun newProcess() {
        Tributary.installation = Installation(AndroidPlatform())
    }

    private fun identify(userId: String): Boolean {
        var result: Boolean? = null
        Tributary.identify(userId) { result = it }
        awaitOnMainThread("The result of identify") { result != null }
        return result == true
    }

    private fun start(options: TributaryOptions = TributaryOptions(url, deferredMatch = false)): Boolean =
        Tributary.start(app, "pk_live_test", options)

    @Test
    fun `the key and the base address come from the manifest`() {
        assertFalse(Tributary.start(app))
        val info = shadowOf(app.packageManager).getInternalMutablePackageInfo(app.packageName)
        info.applicationInfo?.metaData = Bundle().apply {
            putString("dev.tributary.API_KEY", "pk_live_test")
            putString("dev.tributary.API_BASE_URL", url)
        }
        assertTrue(Tributary.start(app, options = TributaryOptions(deferredMatch = false)))
        assertTrue(identify("u"))
    }

    @Test
    fun `the consent recipe of the README keeps the link until the consent`() {
        val sdks = File(System.getProperty("sdks"))
        val recipe = File(sdks, "kotlin/android/src/test/kotlin/dev/tributary/ConsentRecipe.kt").readText()
        assertTrue("```kotlin\n${recipe.substringAfter("word for word.\n")}```" in File(sdks, "kotlin/README.md").readText())
        val info = shadowOf(app.packageManager).getInternalMutablePackageInfo(app.packageName)
        info.applicationInfo?.metaData = Bundle().apply {
            putString("dev.tributary.API_KEY", "pk_live_test")
            putString("dev.tributary.API_BASE_URL", url)
        }
        launchWithConsent(app, false)
        var isAnswered = false
        Tributary.attribute(Uri.parse("https://x.test/?via=spring")) { isAnswered = true }
        awaitOnMainThread("The result of attribute") { isAnswered }
        assertTrue(bodies.isEmpty())
        onConsentChosen(true)
        awaitOnMainThread("The affiliate") { Tributary.attributedAffiliateId() == "aff_1" }
        assertTrue("\"affiliateCode\":\"spring\"" in bodies.take())
        onConsentChosen(false)
        assertNull(Tributary.attributedAffiliateId())
    }

    @Test
    fun `a start without a key logs one line`() {
        assertFalse(Tributary.start(app, options = TributaryOptions(url)))
        assertEquals(
            listOf("No SDK key: set apiKey to the key of your app (pk_live_…). Nothing is sent."),
            ShadowLog.getLogsForTag("tributary").map { it.msg },
        )
    }

    @Test
    fun `results and onAttribution come on the main thread`() {
        val threads = LinkedBlockingQueue<Thread>()
        start(TributaryOptions(url, deferredMatch = false, onAttribution = { threads.put(Thread.currentThread()) }))
        Tributary.applyCode("SPRING") { threads.put(Thread.currentThread()) }
        awaitOnMainThread("Both callbacks") { threads.size == 2 }
        for (thread in threads) assertSame(Looper.getMainLooper().thread, thread)
    }

    @Test
    fun `the await variants suspend until the result is known`() {
        start()
        var result: Result<Boolean>? = null
        suspend { Tributary.awaitApplyCode("SPRING") && Tributary.awaitAttribute(Uri.parse("app://x/?via=SPRING")) && Tributary.awaitIdentify("u") }
            .startCoroutine(Continuation(EmptyCoroutineContext) { result = it })
        awaitOnMainThread("The end of the coroutine") { result != null }
        assertEquals(Result.success(true), result)
    }

    @Test
    fun `an intent without an address is no referral`() {
        start()
        var result: Boolean? = null
        Tributary.attribute(null as Uri?) { result = it }
        awaitOnMainThread("The result of attribute") { result != null }
        assertEquals(false, result)
        Tributary.attribute(null as Intent?)
        Tributary.attribute(Intent())
        assertFalse(applied(""))
        assertTrue(bodies.isEmpty())
    }

    /** Waits until every call before it is made. */
    private fun applied(code: String): Boolean {
        var result: Boolean? = null
        Tributary.applyCode(code) { result = it }
        awaitOnMainThread("The result of applyCode") { result != null }
        return result == true
    }

    @Test
    fun `an activity that the system creates again with a new copy of its intent sends no link`() {
        start()
        val intent = Intent(Intent.ACTION_VIEW, Uri.parse("app://open?via=SPRING"))
        Robolectric.buildActivity(Activity::class.java, intent).create(Bundle())
        Tributary.attribute(intent)
        assertFalse(applied(""))
        assertTrue(bodies.isEmpty())
    }

    @Test
    fun `the referrer of Google Play is not asked for after a reset, not even by the next process`() {
        FakePlay.install(app, "via=SPRING")?.isBroken = true
        start()
        Tributary.reset()
        assertTrue(identify("u"))
        FakePlay.install(app, "via=SPRING")
        newProcess()
        start()
        assertTrue(identify("v"))
        awaitOnMainThread("The state") { "\"v\"" in File(app.noBackupFilesDir, "tributary.json").readText() }
        assertFalse("SPRING" in bodies.joinToString())
        assertFalse(PlayReferrer(app).isPending())
    }

    @Test
    fun `a deferred match is asked for unless it is turned off`() {
        start(TributaryOptions(url))
        assertTrue(identify("u"))
        assertTrue("\"deferred\":true" in bodies.take())
        assertTrue("\"customerUserId\":\"u\"" in bodies.take())
    }

    @Test
    fun `no deferred match is asked for if an update of an installed app added the SDK`() {
        val info = shadowOf(app.packageManager).getInternalMutablePackageInfo(app.packageName)
        info.firstInstallTime = System.currentTimeMillis() - 2 * 86_400_000L
        start(TributaryOptions(url))
        assertTrue(identify("u"))
        assertTrue("\"customerUserId\":\"u\"" in bodies.take())
        newProcess()
        start(TributaryOptions(url))
        assertTrue(identify("v"))
        assertTrue("\"customerUserId\":\"v\"" in bodies.take())
    }

    @Test
    fun `the state is in the folder that is not backed up`() {
        start()
        identify("u")
        assertTrue("\"aff_1\"" in File(app.noBackupFilesDir, "tributary.json").readText())
        newProcess()
        start()
        awaitOnMainThread("The stored affiliate") { Tributary.attributedAffiliateId() == "aff_1" }
        Tributary.reset()
        assertNull(Tributary.attributedAffiliateId())
    }

    @Test
    fun `an app without the permission to watch the network is started`() {
        shadowOf(app).denyPermissions("android.permission.ACCESS_NETWORK_STATE")
        assertTrue(start())
        assertTrue(identify("u"))
    }
}
