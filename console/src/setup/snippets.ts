/** The calls of each SDK. Every app makes two: `start` at its launch, and `identify` when somebody signs in. */
export interface Snippet {
  readonly platform: string;
  readonly code: (sdkKey: string, serviceUrl: string) => string;
}

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
    code: (key, url) => `await Tributary.start(
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
    code: (
      key,
      url,
    ) => `# Without an SDK: at the first launch, with the claim_token that the link added to its destination
curl ${url}/sdk/install -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{ "deviceId": "DEVICE", "firstOpenAt": NOW_IN_MS, "claimToken": "TOKEN" }'
# If the user entered a code instead of opening a link, replace "claimToken" by "affiliateCode": "CODE"

# After sign-in, with the id that the billing provider reports
curl ${url}/sdk/identify -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{ "deviceId": "DEVICE", "customerUserId": "USER", "identifiedAt": NOW_IN_MS }'`,
  },
];
