/** What a link passes on: the token of a click, the code of a link, or both. */
export interface Referral {
  readonly claimToken?: string | undefined;
  readonly code?: string | undefined;
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Returns the code without surrounding spaces, or undefined if no code has this form. */
export function asCode(text: unknown): string | undefined {
  const code = typeof text === 'string' ? text.trim() : '';
  // eslint-disable-next-line no-control-regex -- A code with a control character would be refused.
  return /^[^\0-\x1f\x7f]{1,200}$/.test(code) ? code : undefined;
}

/** Returns the claim token in lower case, or undefined if the text is no UUID. */
export function asClaimToken(text: unknown): string | undefined {
  return UUID.test(text as string) ? `${text as string}`.toLowerCase() : undefined;
}

/** Returns the referral with its valid parts, or undefined if it has none. */
export function asReferral(claimToken: unknown, code: unknown): Referral | undefined {
  const valid = { claimToken: asClaimToken(claimToken), code: asCode(code) };
  return valid.claimToken || valid.code ? valid : undefined;
}

/**
 * Returns the referral in a query string. Reads `claim_token` and `via` only: `code` and `ref` belong to OAuth and to
 * other programs. Own parsing, because the `URLSearchParams` of React Native is incomplete.
 */
export function referralFromQuery(query: string): Referral | undefined {
  const values: Record<string, string> = {};
  for (const pair of query.split('&')) {
    const [name = '', ...value] = pair.split('=');
    try {
      // An empty value is none.
      values[name] ||= decodeURIComponent(value.join('=').replace(/\+/g, ' '));
    } catch {
      // A parameter with a malformed escape is not ours.
    }
  }
  return asReferral(values['claim_token'], values['via']);
}

/** Returns the referral in the query of an address of any scheme, or undefined if it has none. */
export function referralFrom(url: string | URL): Referral | undefined {
  try {
    const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(String(url)) ?? [];
    return referralFromQuery(query);
  } catch {
    // An object that has no text.
    return undefined;
  }
}
