import { browserSupportsWebAuthn, startAuthentication, startRegistration } from '@simplewebauthn/browser';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';

/** Returns whether the service and this browser take passkeys. */
export const canUsePasskeys = ({ takesPasskeys = false }: { readonly takesPasskeys?: boolean }): boolean =>
  takesPasskeys && browserSupportsWebAuthn();

/** What the browser reports instead of an answer, in words. */
const PROBLEMS: Readonly<Record<string, string>> = {
  NotAllowedError:
    'The browser has used no passkey: it was cancelled, took too long, or there is none. Try again.',
  InvalidStateError: 'This browser or device already has a passkey of yours for this account.',
  SecurityError:
    'Passkeys work only at the own address of the service, which the operator has set. Open the console there.',
};

/** Throws why the browser did not do what it was asked. */
function fail(error: unknown): never {
  const name = error instanceof Error ? error.name : '';
  throw new Error(PROBLEMS[name] ?? 'The browser could not use a passkey. Try again, or another browser.', {
    cause: error,
  });
}

/** Has the browser create a passkey, and adds it to the member who is signed in. */
export async function addPasskey(name: string): Promise<Schemas['Passkey']> {
  const optionsJSON = await read(api.POST('/session/passkeys/options'));
  const { id, response } = await startRegistration({ optionsJSON }).catch(fail);
  const { clientDataJSON, attestationObject } = response;
  return await read(api.POST('/session/passkeys', { body: { name, id, clientDataJSON, attestationObject } }));
}

async function answer(optionsJSON: Schemas['PasskeyRequest']): Promise<Schemas['PasskeyAnswer']> {
  const { id, response } = await startAuthentication({ optionsJSON }).catch(fail);
  const { clientDataJSON, authenticatorData, signature, userHandle = '' } = response;
  return {
    id,
    clientDataJSON,
    authenticatorData,
    signature,
    userHandle: userHandle === '' ? null : userHandle,
  };
}

/** Signs this browser in with a passkey that the person chooses. */
export async function signInWithPasskey(): Promise<Schemas['Session']> {
  const passkey = await answer(await read(api.POST('/session/passkeys/sign-in-options')));
  return await read(api.POST('/session', { body: { passkey } }));
}

/** Lets the session pay for 15 minutes with a passkey of its member. */
export async function raiseWithPasskey(): Promise<Schemas['Session']> {
  const passkey = await answer(await read(api.POST('/session/passkeys/raise-options')));
  return await read(api.POST('/session/raise', { body: { passkey } }));
}
