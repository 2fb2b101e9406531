import { read } from '../api/client.ts';
import { api } from './api.ts';

/** What a sign-in link of a creator does. */
export const LINK_TERMS =
  'This browser stays signed in. The link works in five browsers; keep it to yourself.';

/** Signs the browser in with the token of a link. */
export const signInWith = async (token: string) =>
  await read(api.POST('/creator/session', { body: { token } }));
