package dev.tributary.flutter

import android.content.Context
import android.net.Uri
import dev.tributary.ResultCallback
import dev.tributary.Tributary
import dev.tributary.TributaryOptions
import io.flutter.embedding.engine.plugins.FlutterPlugin
import io.flutter.plugin.common.MethodCall
import io.flutter.plugin.common.MethodChannel

/** Passes the calls of Dart on to the Android SDK. */
public class TributaryFlutterPlugin : FlutterPlugin, MethodChannel.MethodCallHandler {
    private lateinit var context: Context
    private lateinit var channel: MethodChannel

    override fun onAttachedToEngine(binding: FlutterPlugin.FlutterPluginBinding) {
        context = binding.applicationContext
        channel = MethodChannel(binding.binaryMessenger, "dev.tributary/sdk")
        channel.setMethodCallHandler(this)
    }

    override fun onDetachedFromEngine(binding: FlutterPlugin.FlutterPluginBinding) {
        channel.setMethodCallHandler(null)
        if (startedChannel === channel) startedChannel = null
    }

    override fun onMethodCall(call: MethodCall, result: MethodChannel.Result) {
        val text = { name: String -> call.argument<String>(name) }
        val onResult = ResultCallback { result.success(it) }
        when (call.method) {
            "start" -> {
                startedChannel = channel
                val options = TributaryOptions(
                    apiBaseUrl = text("apiBaseUrl"),
                    deferredMatch = call.argument<Boolean>("deferredMatch"),
                    debug = call.argument<Boolean>("debug") == true,
                    onAttribution = { startedChannel?.invokeMethod("onAttribution", it) },
                )
                result.success(Tributary.start(context, text("apiKey"), options))
            }
            "identify" -> Tributary.identify(text("userId").orEmpty(), text("signature"), onResult)
            "attribute" -> Tributary.attribute(text("url")?.let(Uri::parse), onResult)
            "applyCode" -> Tributary.applyCode(text("code").orEmpty(), onResult)
            "attributedAffiliateId" -> result.success(Tributary.attributedAffiliateId())
            "deviceId" -> result.success(Tributary.deviceId())
            "debugState" -> Tributary.debugState { result.success(it?.toString()) }
            "reset" -> {
                Tributary.reset()
                result.success(null)
            }
            "setEnabled" -> {
                Tributary.setEnabled(call.argument<Boolean>("enabled") == true)
                result.success(null)
            }
            else -> result.notImplemented()
        }
    }

    private companion object {
        /**
         * The channel of the engine that called `start` last. The SDK keeps the callback of its first start in this process, whose engine
         * may have ended; an engine that calls nothing, such as one for messages in the background, has no callback.
         */
        var startedChannel: MethodChannel? = null
    }
}
