// The few declarations of Flutter's Android embedding that the plugin uses. For compilation only.
package io.flutter.embedding.engine.plugins

import android.content.Context
import io.flutter.plugin.common.BinaryMessenger

interface FlutterPlugin {
    fun onAttachedToEngine(binding: FlutterPluginBinding)

    fun onDetachedFromEngine(binding: FlutterPluginBinding)

    class FlutterPluginBinding(val applicationContext: Context, val binaryMessenger: BinaryMessenger)
}
