/** Schemes that run code in a browser, read the reader's disk or lead nowhere. */
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

/** Spaces and control characters: URL parsers drop some of them, so two parsers may read two schemes. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const UNPRINTABLE = /[\u0000-\u0020\u007f]/;

/** Whether a link may send people there: a web address, or an address of an app's own scheme. */
export function isDestinationUrl(text: string): boolean {
  if (UNPRINTABLE.test(text) || !URL.canParse(text)) return false;
  const { protocol } = new URL(text);
  // No web address without a host can be parsed; of another scheme something has to follow.
  return !REFUSED_SCHEMES.has(protocol) && text.length > protocol.length;
}
