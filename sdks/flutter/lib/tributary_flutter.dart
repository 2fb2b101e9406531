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

/// A billing SDK of the app, which the app has configured. The README has the lines for each provider.
final class BillingSdk {
  const BillingSdk({required this.name, required this.identify, required this.setAttribute, this.maxCodeLength = 64});

  /// How [LinkResult] names it.
  final String name;

  /// Passes on the user id. Fails if the billing SDK refuses it.
  final Future<void> Function(String userId) identify;

  /// Sets an attribute of the current user.
  final Future<void> Function(String name, String value) setAttribute;

  /// The longest value that the billing SDK takes.
  final int maxCodeLength;
}

/// The names of the billing SDKs that accepted the user id, and of those that took the code.
final class LinkResult {
  const LinkResult(this.userId, this.code);

  final List<String> userId;
  final List<String> code;
}

/// The calls of the SDK. They pass everything on to the native SDK and never throw.
abstract final class Tributary {
  static const _channel = MethodChannel('dev.tributary/sdk');
  static const _apiKey = String.fromEnvironment('TRIBUTARY_API_KEY');
  static const _apiBaseUrl = String.fromEnvironment('TRIBUTARY_API_BASE_URL');

  /// The first callback that a start had. A second start changes nothing.
  static void Function(String affiliateId)? _onAttribution;

  /// Starts the SDK. Call it in `main`, after `WidgetsFlutterBinding.ensureInitialized()`. The key defaults to the dart-define
  /// `TRIBUTARY_API_KEY`. False without a key or a base address.
  static Future<bool> start({String? apiKey, TributaryOptions options = const TributaryOptions()}) async {
    _onAttribution ??= options.onAttribution;
    _channel.setMethodCallHandler((call) async {
      final affiliateId = call.arguments;
      if (call.method == 'onAttribution' && affiliateId is String) _onAttribution?.call(affiliateId);
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

  /// A code that is neither an e-mail address nor a name.
  static final _code = RegExp(r'^[^\s@\x00-\x1f\x7f]{1,64}$');
  static int _links = 0;

  /// Passes the app's user id, and the creator's code as the attribute `tributary_code`, to the billing SDKs of the app. One that
  /// fails or does not answer within ten seconds does not stop the others. A code with `@` or spaces, or longer than 64 characters,
  /// is not passed on.
  static Future<LinkResult> linkPurchases(String userId, List<BillingSdk> sdks, {String? code}) async {
    final identified = <String>[];
    final coded = <String>[];
    final call = ++_links;
    Future<void> link(BillingSdk sdk) async {
      try {
        await sdk.identify(userId);
        identified.add(sdk.name);
        // Of several calls at once only the last sets its code: the attribute is that of the current user.
        if (code == null || !_code.hasMatch(code) || code.length > sdk.maxCodeLength || call != _links) return;
        await sdk.setAttribute('tributary_code', code);
        coded.add(sdk.name);
      } catch (_) {
        // The result names who accepted.
      }
    }

    if (userId.isNotEmpty && userId.length <= 512) {
      await Future.wait(sdks.map(link)).timeout(const Duration(seconds: 10), onTimeout: () => const []);
    }
    return LinkResult(List.of(identified), List.of(coded));
  }

  /// Returns the device id, or null without a consent or if the state is not read yet.
  static Future<String?> deviceId() => _call<String>('deviceId', const {});

  /// Returns what the native SDK knows, as JSON, for a developer who looks for an error; null before the start. Changes and sends
  /// nothing.
  static Future<String?> debugState() => _call<String>('debugState', const {});

  /// Deletes everything that is stored.
  static Future<void> reset() => _call<void>('reset', const {});

  /// The consent. False before the start of a new installation means that it is undecided: nothing is sent, and referrals wait
  /// in memory for `setEnabled(true)`. False after the start is a refusal, which deletes everything.
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
