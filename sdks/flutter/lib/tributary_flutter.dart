/// Attributes installations and their purchases to affiliates.
library;

import 'package:flutter/services.dart';

/// Options of [Tributary.start]. Each has a default.
final class TributaryOptions {
  const TributaryOptions({this.apiBaseUrl, this.deferredMatch = true, this.debug = false, this.onAttribution});

  /// The base address of the service. The default is the dart-define `TRIBUTARY_API_BASE_URL`, then the manifest of Android or
  /// the `Info.plist` of iOS.
  final String? apiBaseUrl;

  /// Whether a first open without a referral is matched by the address of the device.
  final bool deferredMatch;

  /// Whether to log each answer.
  final bool debug;

  /// Called when the installation is attributed to an affiliate.
  final void Function(String affiliateId)? onAttribution;
}

/// The calls of the SDK. They pass everything on to the native SDK and never throw.
abstract final class Tributary {
  static const _channel = MethodChannel('dev.tributary/sdk');
  static const _apiKey = String.fromEnvironment('TRIBUTARY_API_KEY');
  static const _apiBaseUrl = String.fromEnvironment('TRIBUTARY_API_BASE_URL');

  /// Starts the SDK. Call it in `main`, after `WidgetsFlutterBinding.ensureInitialized()`. The key defaults to the dart-define
  /// `TRIBUTARY_API_KEY`. False without a key or a base address.
  static Future<bool> start({String? apiKey, TributaryOptions options = const TributaryOptions()}) async {
    _channel.setMethodCallHandler((call) async {
      final affiliateId = call.arguments;
      if (call.method == 'onAttribution' && affiliateId is String) options.onAttribution?.call(affiliateId);
    });
    return await _isTrue('start', {
      'apiKey': apiKey ?? (_apiKey.isEmpty ? null : _apiKey),
      'apiBaseUrl': options.apiBaseUrl ?? (_apiBaseUrl.isEmpty ? null : _apiBaseUrl),
      'deferredMatch': options.deferredMatch,
      'debug': options.debug,
    });
  }

  /// Binds the app's user id to the attribution. True once it is bound.
  static Future<bool> identify(String userId, {String? signature}) =>
      _isTrue('identify', {'userId': userId, 'signature': signature});

  /// Takes the referral of an address (`claim_token`, `via`). True if the service accepted it.
  static Future<bool> attribute(Uri url) => _isTrue('attribute', {'url': url.toString()});

  /// Takes a code that a user entered. True if the service knows the code.
  static Future<bool> applyCode(String code) => _isTrue('applyCode', {'code': code});

  /// Returns the affiliate, or null if there is none or the state is not read yet.
  static Future<String?> attributedAffiliateId() => _call<String>('attributedAffiliateId', const {});

  /// Deletes everything that is stored.
  static Future<void> reset() => _call<void>('reset', const {});

  /// Deletes everything and sends nothing until it is enabled again.
  static Future<void> setEnabled(bool enabled) => _call<void>('setEnabled', {'enabled': enabled});

  static Future<bool> _isTrue(String method, Map<String, Object?> arguments) async =>
      await _call<bool>(method, arguments) ?? false;

  static Future<T?> _call<T>(String method, Map<String, Object?> arguments) async {
    try {
      return await _channel.invokeMethod<T>(method, arguments);
    } on PlatformException {
      return null;
    } on MissingPluginException {
      // A platform without the native SDK, such as the web.
      return null;
    }
  }
}
