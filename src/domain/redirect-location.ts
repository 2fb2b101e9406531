/** What a redirect passes to its destination. */
export interface HandedTouch {
  /** Identifies the click. The app redeems it with its install. */
  readonly claimToken: string;
  /** The link's slug: a code that still works if the token is lost. */
  readonly slug: string;
}

/** Splits before the first `mark`. The second part begins with it, or is empty. */
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

/** Appends the parameters of the touch and removes others with the same names. */
function withTouch(parameters: readonly string[], { claimToken, slug }: HandedTouch): string[] {
  const others = parameters.filter((parameter) => !['claim_token', 'via'].includes(nameOf(parameter)));
  return [...others, `claim_token=${encodeURIComponent(claimToken)}`, `via=${encodeURIComponent(slug)}`];
}

function isReferrer(parameter: string): boolean {
  return nameOf(parameter) === 'referrer';
}

/**
 * Adds the parameters of the touch inside `referrer`, the only parameter that Google Play passes to the installed app.
 * A referrer is itself a query, encoded as one value.
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
 * Returns where a redirect leads: a link's destination, with `claim_token` and `via` added when the click counts. The
 * rest of the query and the fragment do not change, since the destination may parse them in its own way. The result is
 * ASCII, as headers require.
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
