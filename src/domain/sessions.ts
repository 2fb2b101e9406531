import { DAY_MS } from './time.ts';

/** How long a session lasts without a request, ms. */
export const SESSION_IDLE_MS = 7 * DAY_MS;
/** How long a session lasts at most, ms. */
export const SESSION_MAX_MS = 30 * DAY_MS;
/** How long a session may pay after a key with the permission `payout` was entered, ms. */
export const RAISED_MS = 15 * 60_000;
/** How long a sign-in link is valid, ms. */
export const SIGN_IN_LINK_MS = 15 * 60_000;
/** How long a link is valid that an owner copies or mails to a member, ms. Its session does not pay. */
export const MEMBER_LINK_MS = DAY_MS;
/** The most links that are mailed to a member and are valid at a time. Who cannot get another one has these. */
export const MOST_OPEN_LINKS = 3;
/** How long the link is valid that a new installation prints, ms. */
export const FIRST_LINK_MS = 30 * 60_000;
/** How long the session of a creator lasts without a request, ms. */
export const CREATOR_SESSION_IDLE_MS = 90 * DAY_MS;
/** How long the session of a creator lasts at most, ms. */
export const CREATOR_SESSION_MAX_MS = 365 * DAY_MS;
/** How long a creator's sign-in link is valid, ms. */
export const CREATOR_LINK_MS = 7 * DAY_MS;
/** How many sessions a creator's sign-in link starts. */
export const CREATOR_LINK_USES = 5;
/** How long the session of an operator lasts, ms. */
export const OPERATOR_SESSION_MS = 12 * 3_600_000;
/** The name of the account that a new installation creates, if none is given. */
export const FIRST_ACCOUNT_NAME = 'My company';

/** Random bytes in the token of a session or a sign-in link. */
export const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** Whether a text has the form of a token: 32 bytes in base64url. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/**
 * Returns the address at which a person spends a sign-in link. The token is in the fragment, which browsers send to no
 * server, so it is in no log.
 */
export function signInUrl(publicUrl: string, token: string, { isNew }: { readonly isNew: boolean }): string {
  return `${publicUrl.replace(/\/$/, '')}/console/#token=${token}${isNew ? '&new=1' : ''}`;
}

/** Returns the address at which a creator spends a sign-in link. */
export function creatorSignInUrl(publicUrl: string, token: string): string {
  return `${publicUrl.replace(/\/$/, '')}/console/creator/#token=${token}`;
}

/** Returns the address of the page of creators, for one who has a session. */
export function creatorPageUrl(publicUrl: string): string {
  return `${publicUrl.replace(/\/$/, '')}/console/creator/`;
}

/** Returns the address of the console's page with the passkeys, keys and sessions of who is signed in. */
export function accessPageUrl(publicUrl: string): string {
  return `${publicUrl.replace(/\/$/, '')}/console/access`;
}

/** Returns the address at which an operator spends a sign-in link. */
export function operatorSignInUrl(publicUrl: string, token: string): string {
  return `${publicUrl.replace(/\/$/, '')}/console/operator/#token=${token}`;
}
