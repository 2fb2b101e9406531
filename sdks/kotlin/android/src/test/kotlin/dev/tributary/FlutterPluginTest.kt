package dev.tributary

import android.app.Application
import dev.tributary.flutter.TributaryFlutterPlugin
import io.flutter.embedding.engine.plugins.FlutterPlugin
import io.flutter.plugin.common.BinaryMessenger
import io.flutter.plugin.common.MethodCall
import io.flutter.plugin.common.MethodChannel
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config

/** The Kotlin side of `sdks/flutter`, with stubs of Flutter's embedding. */
@RunWith(RobolectricTestRunner::class)
@Config(sdk = [34])
class FlutterPluginTest {
    private val app: Application get() = RuntimeEnvironment.getApplication()
    private val service = FakeService()
    private var plugin = TributaryFlutterPlugin()
    private val sentToDart = ArrayList<Pair<String, Any?>>()

    @After
    fun end() = service.close()

    private fun call(method: String, vararg arguments: Pair<String, Any?>): Any? {
        val results = ArrayList<Any?>()
        val result = object : MethodChannel.Result {
            override fun success(result: Any?) {
                results.add(result)
            }

            override fun error(errorCode: String, errorMessage: String?, errorDetails: Any?) = error(errorCode)

            override fun notImplemented() {
                results.add("not implemented")
            }
        }
        plugin.onMethodCall(MethodCall(method, mapOf(*arguments)), result)
        awaitOnMainThread("The result of $method") { results.size == 1 }
        return results.single()
    }

    @Test
    fun `the plugin passes the calls of Dart on and answers them`() {
        FakePlay.install(app, null)
        Tributary.installation = Installation(AndroidPlatform())
        val messenger = object : BinaryMessenger {
            override fun invoked(method: String, arguments: Any?) {
                sentToDart.add(method to arguments)
            }
        }
        plugin.onAttachedToEngine(FlutterPlugin.FlutterPluginBinding(app, messenger))
        assertEquals(null, call("debugState"))
        assertEquals(false, call("start", "deferredMatch" to false))
        assertEquals(
            true,
            call("start", "apiKey" to "pk_live_test", "apiBaseUrl" to service.url, "deferredMatch" to false, "debug" to false),
        )
        assertEquals(true, call("attribute", "url" to "shop://open?via=spring"))
        assertEquals(true, call("applyCode", "code" to "SUMMER"))
        assertEquals(true, call("identify", "userId" to "u", "signature" to null))
        assertEquals("aff_1", call("attributedAffiliateId"))
        val deviceId = call("deviceId") as String
        assertTrue("\"deviceId\":\"$deviceId\"" in service.bodies.take())
        val state = call("debugState") as String
        for (field in listOf("\"sdk\":\"android/", "\"attribution\":\"attributed\"", "\"deviceId\":\"${deviceId.take(8)}\""))
            assertTrue(state, field in state)
        assertEquals(listOf("onAttribution" to "aff_1"), sentToDart)
        call("reset")
        assertEquals(null, call("attributedAffiliateId"))
        call("setEnabled", "enabled" to false)
        assertEquals(false, call("identify", "userId" to "u"))
        assertEquals("not implemented", call("other"))
    }

    @Test
    fun `onAttribution reaches the engine that called start last`() {
        FakePlay.install(app, null)
        Tributary.installation = Installation(AndroidPlatform())
        val reached = ArrayList<String>()
        for (engine in listOf("first", "second", "background")) {
            val messenger = object : BinaryMessenger {
                override fun invoked(method: String, arguments: Any?) {
                    reached.add(engine)
                }
            }
            plugin = TributaryFlutterPlugin()
            plugin.onAttachedToEngine(FlutterPlugin.FlutterPluginBinding(app, messenger))
            if (engine != "background")
                call("start", "apiKey" to "pk_live_test", "apiBaseUrl" to service.url, "deferredMatch" to false)
        }
        assertEquals(true, call("applyCode", "code" to "SUMMER"))
        assertEquals(listOf("second"), reached)
    }
}
