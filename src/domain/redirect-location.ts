/** What a redirect hands to the place it leads to. */
export interface HandedTouch {
  /** Names the click; the app redeems it with its install. */
  readonly claimToken: string;
  /** The link's slug: a code that still works where the token is lost. */
  readonly slug: string;
}

/** The text before the first `mark`, and the rest with it. */
function cut(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)];
}

function decode(text: string): string {
  return new URLSearchParams(`v=${text}`).get('v') ?? '';
}

function nameOf(parameter: string): string {
  return decode(cut(parameter, '=')[0]);
}

function valueOf(parameter: string): string {
  return decode(cut(parameter, '=')[1].slice(1));
}

/** The parameters with those of the touch at the end, in the place of any that had their names. */
function withTouch(parameters: readonly string[], { claimToken, slug }: HandedTouch): string[] {
  const others = parameters.filter((parameter) => !['claim_token', 'via'].includes(nameOf(parameter)));
  return [...others, `claim_token=${encodeURIComponent(claimToken)}`, `via=${encodeURIComponent(slug)}`];
}

function isReferrer(parameter: string): boolean {
  return nameOf(parameter) === 'referrer';
}

/**
 * The same inside `referrer`, the one parameter that Google Play hands to the app that it installs. A referrer is a
 * query of its own, encoded as one value.
 */
function withReferrer(parameters: readonly string[], touch: HandedTouch): string[] {
  const referrer = parameters
    .filter(isReferrer)
    .flatMap((parameter) => valueOf(parameter).split('&'))
    .filter((parameter) => parameter !== '');
  return [
    ...parameters.filter((parameter) => !isReferrer(parameter)),
    `referrer=${encodeURIComponent(withTouch(referrer, touch).join('&'))}`,
  ];
}

function isPlayStore({ protocol, host, pathname }: URL): boolean {
  return protocol === 'market:'
    ? host === 'details'
    : host === 'play.google.com' && /^\/store\/apps\/details\/?$/.test(pathname);
}

/**
 * Where a redirect sends people: a link's destination, with `claim_token` and `via` added when the click counts. The rest
 * of the query and the fragment stay as they are, since the destination may read them in ways of its own. Only ASCII
 * characters come out, as a header needs it.
 */
export function redirectLocation(destinationUrl: string, touch: HandedTouch | null): string {
  const url = new URL(destinationUrl);
  if (touch === null) return url.href;
  const [address, fragment] = cut(url.href, '#');
  const [path, query] = cut(address, '?');
  const parameters = query.length > 1 ? query.slice(1).split('&') : [];
  const handed = isPlayStore(url) ? withReferrer(parameters, touch) : withTouch(parameters, touch);
  return `${path}?${handed.join('&')}${fragment}`;
}
