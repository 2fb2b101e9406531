/** An Android app and the certificates that it is signed with. */
export interface AndroidApp {
  readonly packageName: string;
  /** In the form that `keytool` prints: 32 bytes in hex, separated by colons. */
  readonly sha256CertFingerprints: readonly string[];
}

/** The mobile apps that may open an app's links, and the paths of these links on a host. */
export interface AssociatedLinks {
  /** `TEAMID.bundle.id` */
  readonly iosAppIds: readonly string[];
  readonly androidApps: readonly AndroidApp[];
  /** Patterns such as `/l/my-app/*`. */
  readonly paths: readonly string[];
  /** The account of the app, in a file that accounts share. */
  readonly accountId?: string;
}

/** Apple ignores a larger file, uncompressed bytes. */
const MAX_FILE_BYTES = 128 * 1024;
/** How much of a file that accounts share one of them can fill: about 40 apps of the usual size. */
const ACCOUNT_BYTES = MAX_FILE_BYTES / 8;

const IOS_APP_ID = /^[A-Z0-9]{10}\.[A-Za-z0-9-]{1,100}(?:\.[A-Za-z0-9-]{1,100}){0,9}$/;
const ANDROID_PACKAGE = /^[A-Za-z]\w{0,99}(?:\.[A-Za-z]\w{0,99}){1,9}$/;
const FINGERPRINT = /^[0-9A-F]{2}(?::[0-9A-F]{2}){31}$/;

/** Whether `text` is an app id of Apple: the team id, a dot and the bundle id. */
export function isIosAppId(text: string): boolean {
  return IOS_APP_ID.test(text);
}

/** Whether `text` is the package name of an Android app. */
export function isAndroidPackage(text: string): boolean {
  return ANDROID_PACKAGE.test(text);
}

/** Whether `text` is the SHA-256 fingerprint of a certificate, in capitals. */
export function isCertFingerprint(text: string): boolean {
  return FINGERPRINT.test(text);
}

/**
 * The links that open an app directly: those with the link's slug as `via`. The service does not see such a visit, so the
 * address itself must say whose link it is. Any other link goes through the redirect, which counts it.
 */
function components(paths: readonly string[]) {
  return paths.map((path) => ({ '/': path, '?': { via: '?*' } }));
}

/** An entry of a file, and the account that it is of in a file that accounts share. */
type Owned<Entry> = readonly [entry: Entry, accountId: string | undefined];

/**
 * Adds entries until one does not fit: the first ones work, and the others go through the redirect. So do those of an account that
 * do not fit into its part.
 */
function fileOf<Entry>(
  entries: Iterable<Owned<Entry>>,
  wrap: (kept: readonly Entry[]) => unknown,
): string | null {
  const kept: Entry[] = [];
  const filled = new Map<string, number>();
  let size = Buffer.byteLength(JSON.stringify(wrap([])));
  for (const [entry, accountId] of entries) {
    const bytes = Buffer.byteLength(JSON.stringify(entry)) + 1;
    if (accountId !== undefined) {
      const own = (filled.get(accountId) ?? 0) + bytes;
      if (own > ACCOUNT_BYTES) continue;
      filled.set(accountId, own);
    }
    size += bytes;
    if (size > MAX_FILE_BYTES) break;
    kept.push(entry);
  }
  return kept.length === 0 ? null : JSON.stringify(wrap(kept));
}

function* appleEntries(links: Iterable<AssociatedLinks>) {
  for (const { iosAppIds, paths, accountId } of links) {
    if (iosAppIds.length > 0)
      yield [{ appIDs: iosAppIds, components: components(paths) }, accountId] as const;
  }
}

/** Returns the content of `apple-app-site-association`. Null if no app is associated. */
export function appleAssociation(links: Iterable<AssociatedLinks>): string | null {
  return fileOf(appleEntries(links), (kept) => ({ applinks: { details: kept } }));
}

const OPEN_LINKS = 'delegate_permission/common.handle_all_urls';

function* androidEntries(links: Iterable<AssociatedLinks>) {
  for (const { androidApps, paths, accountId } of links) {
    const patterns = [...components(paths), { '/': '*', exclude: true }];
    for (const { packageName, sha256CertFingerprints } of androidApps) {
      const entry = {
        relation: [OPEN_LINKS],
        target: {
          namespace: 'android_app',
          package_name: packageName,
          sha256_cert_fingerprints: sha256CertFingerprints,
        },
        relation_extensions: { [OPEN_LINKS]: { dynamic_app_link_components: patterns } },
      };
      yield [entry, accountId] as const;
    }
  }
}

/**
 * Returns the content of `assetlinks.json`. Null if no app is associated. Android 15 applies the path and query patterns;
 * before it, the manifest of the app alone decides.
 */
export function androidAssociation(links: Iterable<AssociatedLinks>): string | null {
  return fileOf(androidEntries(links), (kept) => kept);
}
