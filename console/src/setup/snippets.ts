/** The calls of each SDK. Every app makes two: `start` at its launch, and `identify` when somebody signs in. */
export interface Snippet {
  readonly platform: string;
  readonly code: (sdkKey: string, serviceUrl: string) => string;
}

/** The user of a trial, in the commands that report one and that send a purchase. */
const TRIAL_USER = 'user-1';

export const SNIPPETS: readonly Snippet[] = [
  {
    platform: 'iOS',
    code: (key, url) => `import Tributary

Tributary.start(
    apiKey: "${key}",
    options: TributaryOptions(apiBaseUrl: "${url}")
)

// After sign-in, with the id that the billing provider reports:
await Tributary.identify(userId: userId)`,
  },
  {
    platform: 'Android',
    code: (key, url) => `import dev.tributary.Tributary
import dev.tributary.TributaryOptions

Tributary.start(this, "${key}", TributaryOptions(apiBaseUrl = "${url}"))

// After sign-in, with the id that the billing provider reports:
Tributary.identify(userId)`,
  },
  {
    platform: 'React Native',
    code: (key, url) => `import { identify, start } from '@tributary/react-native';

void start({ apiKey: '${key}', apiBaseUrl: '${url}' });

// After sign-in, with the id that the billing provider reports:
await identify(userId);`,
  },
  {
    platform: 'Flutter',
    code: (key, url) => `import 'package:tributary_flutter/tributary_flutter.dart';

await Tributary.start(
  apiKey: '${key}',
  options: TributaryOptions(apiBaseUrl: '${url}'),
);

// After sign-in, with the id that the billing provider reports:
await Tributary.identify(userId);`,
  },
  {
    platform: 'Web',
    code: (key, url) => `import { identify, start } from '@tributary/web';

await start({ apiKey: '${key}', apiBaseUrl: '${url}' });

// After sign-in, with the id that the billing provider reports:
await identify(userId);`,
  },
  {
    platform: 'HTTP',
    code: (key, url) => `# The claim_token in the address that the link led to
TOKEN='PASTE_THE_TOKEN'
DEVICE='device-1'
USER_ID='${TRIAL_USER}'

# Without an SDK: at the first launch
curl ${url}/sdk/install -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{ "deviceId": "'"$DEVICE"'", "firstOpenAt": '$(date +%s)000', "claimToken": "'"$TOKEN"'" }'; echo
# If the user entered a link code instead of opening a link, replace "claimToken" by "affiliateCode", and set TOKEN to the code

# After sign-in, with the id that the billing provider reports
curl ${url}/sdk/identify -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{ "deviceId": "'"$DEVICE"'", "customerUserId": "'"$USER_ID"'", "identifiedAt": '$(date +%s)000' }'; echo`,
  },
];

/** The attribute in which an app states the code of a creator, as a line of a body in single quotes. */
const attributeOf = (code: string): string => `
    "subscriber_attributes": {"tributary_code":
      {"value": ${JSON.stringify(code).replaceAll("'", "'\\''")}, "updated_at_ms": '$NOW'}},`;

/**
 * The commands that send a purchase of 9.99 USD as a billing provider would, by the provider's name, for a service that no
 * provider can reach. `code`: the code of a creator that the purchase comes with, for a user whom nobody has brought.
 */
export const TEST_PURCHASES: Readonly<Record<string, (webhookUrl: string, code?: string) => string>> = {
  revenuecat: (url, code) => `SECRET='PASTE_THE_SECRET'
USER_ID='${code === undefined ? TRIAL_USER : 'user-2'}'
NOW=$(date +%s)000
curl ${url} -H "Authorization: $SECRET" \\
  -H 'Content-Type: application/json' \\
  -d '{"event": {"id": "try-'$NOW'", "type": "INITIAL_PURCHASE",
    "event_timestamp_ms": '$NOW', "purchased_at_ms": '$NOW',
    "environment": "PRODUCTION", "store": "APP_STORE",
    "transaction_id": "'$NOW'", "app_user_id": "'"$USER_ID"'",${code === undefined ? '' : attributeOf(code)}
    "price": 9.99, "currency": "USD"}}'`,
  stripe: (url) => `SECRET='PASTE_THE_SECRET'
USER_ID='${TRIAL_USER}'
NOW=$(date +%s)
BODY='{"id": "evt_'$NOW'", "type": "payment_intent.succeeded",
  "created": '$NOW', "livemode": true,
  "data": {"object": {"id": "pi_'$NOW'", "amount_received": 999,
    "currency": "usd", "metadata": {"app_user_id": "'"$USER_ID"'"}}}}'
SIGNATURE=$(printf %s "$NOW.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d ' ' -f 1)
curl ${url} -H "Stripe-Signature: t=$NOW,v1=$SIGNATURE" -d "$BODY"`,
};
