import { hasPlainHost } from './addresses.ts';

/** Schemes that run code in a browser, read local files, or have no destination. */
const BROWSER_SCHEMES = `
  about blob brave chrome chrome-extension data edge file filesystem jar javascript mhtml moz-extension opera resource
  vbscript view-source wyciwyg`;

/** Schemes that an operating system passes to one of its own programs, or to a program for administrators. */
const SYSTEM_SCHEMES = `
  afp android-app android-resource app-prefs bingmaps calculator content hcp help intent its ldap ldaps mk msteams nfs
  onenote prefs res rlogin search shell smb ssh telnet tn3270 vnc x-man-page`;

/** Beginnings of the schemes of an operating system. */
const SYSTEM_PREFIXES = ['ms-', 'microsoft-', 'search-', 'x-apple'];

const REFUSED_SCHEMES = new Set(`${BROWSER_SCHEMES} ${SYSTEM_SCHEMES}`.trim().split(/\s+/));

/** Schemes that every app may link to: the web, and the stores of Google and Apple. */
const COMMON_SCHEMES = new Set(['http', 'https', 'itms-apps', 'itms-appss', 'market']);

function isRefusedScheme(scheme: string): boolean {
  return REFUSED_SCHEMES.has(scheme) || SYSTEM_PREFIXES.some((prefix) => scheme.startsWith(prefix));
}

/** Spaces and control characters. URL parsers drop some of them, so two parsers may read different schemes. */
// oxlint-disable-next-line no-control-regex -- the expression matches control characters on purpose
const UNPRINTABLE = /[\u0000-\u0020\u007f]/;

/** A user name or a password before the host: `https://bank.example@evil.example` shows another host than it leads to. */
const USER_INFO = /^[^/?#]*[/\\]{2}[^/\\?#]*@/;

/** Returns the scheme of a URL without its colon, in lower case. */
function schemeOf(url: string): string {
  return new URL(url).protocol.slice(0, -1);
}

/** Whether `text` may be a link's destination: a web address, or an address with an app's own scheme. */
export function isDestinationUrl(text: string): boolean {
  if (UNPRINTABLE.test(text) || USER_INFO.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  const scheme = schemeOf(text);
  if ((scheme === 'https' || scheme === 'http') && !hasPlainHost(text)) return false;
  // After any other scheme there must be more text.
  return !isRefusedScheme(scheme) && text.length > scheme.length + 1;
}

/** Whether an app can declare the scheme as its own, in lower case and without the colon. */
export function isDeclarableScheme(scheme: string): boolean {
  return /^[a-z][a-z0-9+.-]{0,63}$/.test(scheme) && !COMMON_SCHEMES.has(scheme) && !isRefusedScheme(scheme);
}

/**
 * Whether an app that declared these schemes may link to a destination. Null means that it declared none; it may then
 * link to each destination that `isDestinationUrl` accepts.
 */
export function isDeclaredDestination(destinationUrl: string, schemes: readonly string[] | null): boolean {
  const scheme = schemeOf(destinationUrl);
  return schemes === null || COMMON_SCHEMES.has(scheme) || schemes.includes(scheme);
}
