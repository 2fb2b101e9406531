import Flutter
import Foundation
import Tributary

/// Passes the calls of Dart on to the Swift SDK.
public final class TributaryFlutterPlugin: NSObject, FlutterPlugin {
    /// The channel of the engine that called `start` last. The SDK keeps the callback of its first start in this process, whose
    /// engine may have ended; an engine that calls nothing, such as one for messages in the background, has no callback.
    private static var startedChannel: FlutterMethodChannel?

    private let channel: FlutterMethodChannel

    private init(channel: FlutterMethodChannel) {
        self.channel = channel
    }

    public static func register(with registrar: FlutterPluginRegistrar) {
        let channel = FlutterMethodChannel(name: "dev.tributary/sdk", binaryMessenger: registrar.messenger())
        registrar.addMethodCallDelegate(TributaryFlutterPlugin(channel: channel), channel: channel)
    }

    public func handle(_ call: FlutterMethodCall, result: @escaping FlutterResult) {
        let values = call.arguments as? [String: Any] ?? [:]
        let text = { (name: String) in values[name] as? String }
        let onResult = { (isSuccess: Bool) in result(isSuccess) }
        switch call.method {
        case "start":
            var options = TributaryOptions(apiBaseUrl: text("apiBaseUrl"))
            options.deferredMatch = values["deferredMatch"] as? Bool ?? true
            options.debug = values["debug"] as? Bool ?? false
            Self.startedChannel = channel
            options.onAttribution = { Self.startedChannel?.invokeMethod("onAttribution", arguments: $0) }
            result(Tributary.start(apiKey: text("apiKey"), options: options))
        case "identify":
            Tributary.identify(userId: text("userId") ?? "", signature: text("signature"), completion: onResult)
        case "attribute":
            guard let url = URL(string: text("url") ?? "") else { return result(false) }
            Tributary.attribute(url: url, completion: onResult)
        case "applyCode":
            Tributary.applyCode(text("code") ?? "", completion: onResult)
        case "attributedAffiliateId":
            result(Tributary.attributedAffiliateId())
        case "deviceId":
            result(Tributary.deviceId())
        case "debugState":
            result(Tributary.debugState()?.description)
        case "reset":
            Tributary.reset()
            result(nil)
        case "setEnabled":
            Tributary.setEnabled(values["enabled"] as? Bool ?? false)
            result(nil)
        default:
            result(FlutterMethodNotImplemented)
        }
    }
}
