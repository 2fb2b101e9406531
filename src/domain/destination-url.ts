/** Schemes that run code in a browser, read local files, or have no destination. */
const REFUSED_SCHEMES = new Set([
  'about:',
  'blob:',
  'data:',
  'file:',
  'filesystem:',
  'javascript:',
  'vbscript:',
  'view-source:',
]);

/** Spaces and control characters. URL parsers drop some of them, so two parsers may read different schemes. */
// oxlint-disable-next-line no-control-regex -- the expression matches control characters on purpose
const UNPRINTABLE = /[\u0000-\u0020\u007f]/;

/** Whether `text` may be a link's destination: a web address, or an address with an app's own scheme. */
export function isDestinationUrl(text: string): boolean {
  if (UNPRINTABLE.test(text) || !URL.canParse(text)) return false;
  const { protocol } = new URL(text);
  // A web address without a host does not parse. After any other scheme there must be more text.
  return !REFUSED_SCHEMES.has(protocol) && text.length > protocol.length;
}
