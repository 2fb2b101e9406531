package io.flutter.plugin.common

interface BinaryMessenger {
    /** Not as in Flutter, which sends bytes. */
    fun invoked(method: String, arguments: Any?)
}

class MethodCall(val method: String, private val arguments: Map<String, Any?>) {
    @Suppress("UNCHECKED_CAST")
    fun <T> argument(key: String): T? = arguments[key] as T?
}

class MethodChannel(val messenger: BinaryMessenger, val name: String) {
    interface MethodCallHandler {
        fun onMethodCall(call: MethodCall, result: Result)
    }

    interface Result {
        fun success(result: Any?)

        fun error(errorCode: String, errorMessage: String?, errorDetails: Any?)

        fun notImplemented()
    }

    var handler: MethodCallHandler? = null
        private set

    fun setMethodCallHandler(handler: MethodCallHandler?) {
        this.handler = handler
    }

    fun invokeMethod(method: String, arguments: Any?) {
        messenger.invoked(method, arguments)
    }
}
