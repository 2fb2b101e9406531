import 'package:flutter/material.dart';
import 'package:tributary_flutter/tributary_flutter.dart';

// flutter run --dart-define=TRIBUTARY_API_KEY=pk_live_… --dart-define=TRIBUTARY_API_BASE_URL=http://…
Future<void> main() async {
  WidgetsFlutterBinding.ensureInitialized();
  await Tributary.start(options: const TributaryOptions(debug: true));
  runApp(const MaterialApp(home: ExampleShop()));
}

class ExampleShop extends StatefulWidget {
  const ExampleShop({super.key});

  @override
  State<ExampleShop> createState() => _ExampleShopState();
}

class _ExampleShopState extends State<ExampleShop> {
  final _user = TextEditingController();
  final _code = TextEditingController();
  String _text = '';

  Future<void> _show(Future<bool> call) async {
    final result = await call;
    final affiliateId = await Tributary.attributedAffiliateId();
    if (mounted) setState(() => _text = '$result, affiliate: ${affiliateId ?? 'none'}');
  }

  @override
  Widget build(BuildContext context) => Scaffold(
        body: Column(
          children: [
            TextField(controller: _user, decoration: const InputDecoration(hintText: 'user id')),
            TextButton(onPressed: () => _show(Tributary.identify(_user.text)), child: const Text('Sign up')),
            TextField(controller: _code, decoration: const InputDecoration(hintText: 'code of a creator')),
            TextButton(onPressed: () => _show(Tributary.applyCode(_code.text)), child: const Text('Use code')),
            Text(_text),
          ],
        ),
      );
}
