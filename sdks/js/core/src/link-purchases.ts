/** `Purchases` of react-native-purchases, or an instance of it from @revenuecat/purchases-js. */
export type RevenueCat = {
  readonly setAttributes: (attributes: { [key: string]: string }) => unknown;
} & (
  | { readonly logIn: (appUserId: string) => unknown }
  | { readonly identifyUser: (appUserId: string) => unknown }
);

/** `adapty` of react-native-adapty. */
export interface Adapty {
  readonly identify: (customerUserId: string) => unknown;
  readonly updateProfile: (profile: { codableCustomAttributes: { [key: string]: string } }) => unknown;
}

/**
 * What `useUser()` of expo-superwall returns, or `Superwall.shared` of expo-superwall/compat and of the deprecated
 * @superwall/react-native-superwall.
 */
export type Superwall =
  | {
      readonly identify: (userId: string) => unknown;
      readonly update: (attributes: { [key: string]: string }) => unknown;
    }
  | {
      readonly identify: (user: { userId: string }) => unknown;
      readonly setUserAttributes: (attributes: { [key: string]: string }) => unknown;
    };

/** The billing SDKs of the app, after the app configured them. */
export interface BillingSdks {
  readonly revenueCat?: RevenueCat | null | undefined;
  readonly adapty?: Adapty | null | undefined;
  readonly superwall?: Superwall | null | undefined;
}

export interface LinkOptions {
  /** The creator's code, if the app knows it. Without `@` and spaces, at most 64 characters; others are not passed on. */
  readonly code?: string | null | undefined;
}

/** Which billing SDKs accepted the user id, and which the code. */
export interface LinkResult {
  readonly userId: readonly (keyof BillingSdks)[];
  readonly code: readonly (keyof BillingSdks)[];
}

const NAMES = ['revenueCat', 'adapty', 'superwall'] as const;
/** The name of the attribute that has the creator's code. */
const ATTRIBUTE = 'tributary_code';
const MAX_USER_ID_LENGTH = 512;
// eslint-disable-next-line no-control-regex -- No code has a control character, and a code is neither an e-mail address nor a name.
const CODE = /^[^\s@\0-\x1f\x7f]{1,64}$/;
/** Adapty refuses longer values. */
const MAX_ADAPTY_LENGTH = 50;
/** How long the app waits at most, ms. */
const TIMEOUT_MS = 10_000;

/** How a billing SDK receives a user id and a code. */
interface Link {
  readonly name: keyof BillingSdks;
  readonly identify: () => unknown;
  readonly setCode: (attributes: { [key: string]: string }) => unknown;
  readonly maxCodeLength?: number;
}

let calls = 0;

/**
 * Passes the app's user id, and the creator's code as the attribute `tributary_code`, to the billing SDKs of the app. Resolves to
 * who accepted them so far, after ten seconds at the latest. One that fails or hangs does not stop the others. Never throws or
 * rejects. Of several calls at once only the last passes on its code, because the attribute belongs to the current user.
 */
export async function linkPurchases(
  userId: string,
  sdks: BillingSdks,
  options?: LinkOptions,
): Promise<LinkResult> {
  const accepted = { userId: new Set<keyof BillingSdks>(), code: new Set<keyof BillingSdks>() };
  const result = () => ({
    userId: NAMES.filter((name) => accepted.userId.has(name)),
    code: NAMES.filter((name) => accepted.code.has(name)),
  });
  const call = (calls += 1);
  try {
    if (typeof userId !== 'string' || userId === '' || userId.length > MAX_USER_ID_LENGTH) return result();
    const given = options?.code;
    const code = typeof given === 'string' && CODE.test(given) ? given : undefined;
    const link = async ({ name, identify, setCode, maxCodeLength = 64 }: Link) => {
      try {
        await identify();
        accepted.userId.add(name);
        if (code === undefined || code.length > maxCodeLength || call !== calls) return;
        await setCode({ [ATTRIBUTE]: code });
        accepted.code.add(name);
      } catch {
        // The result names who accepted.
      }
    };
    await inTime(Promise.all(linksOf(userId, sdks ?? {}).map(link)));
  } catch {
    // An object of the app that throws when it is read.
  }
  return result();
}

/** Waits for a promise, at most ten seconds. */
async function inTime(promise: Promise<unknown>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, TIMEOUT_MS);
  });
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}

/** Returns the links to the SDKs that the app passed. */
function linksOf(userId: string, { revenueCat, adapty, superwall }: BillingSdks): Link[] {
  const links: Link[] = [];
  // logIn and setAttributes: revenuecat.com/docs/customers/user-ids and /customer-attributes. identifyUser: purchases-js.
  if (revenueCat)
    links.push({
      name: 'revenueCat',
      identify: () => ('logIn' in revenueCat ? revenueCat.logIn(userId) : revenueCat.identifyUser(userId)),
      setCode: (attributes) => revenueCat.setAttributes(attributes),
    });
  // adapty.io/docs/react-native-identifying-users and /react-native-setting-user-attributes.
  if (adapty)
    links.push({
      name: 'adapty',
      identify: () => adapty.identify(userId),
      setCode: (codableCustomAttributes) => adapty.updateProfile({ codableCustomAttributes }),
      maxCodeLength: MAX_ADAPTY_LENGTH,
    });
  // superwall.com/docs/expo/quickstart/user-management and /setting-user-properties.
  if (superwall)
    links.push({
      name: 'superwall',
      identify: () => ('update' in superwall ? superwall.identify(userId) : superwall.identify({ userId })),
      setCode: (attributes) =>
        'update' in superwall ? superwall.update(attributes) : superwall.setUserAttributes(attributes),
    });
  return links;
}
