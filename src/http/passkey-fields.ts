import * as z from 'zod';
import { label, orNull, textField } from './fields.ts';

/** Bytes in base64url, as browsers send what an authenticator says. */
function bytes(example: string, description: string, maxLength: number) {
  return z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[A-Za-z0-9_-]+$/, 'Must be base64url without padding.')
    .meta({ description: `${description} Base64url.`, examples: [example] });
}

/** The longest id of a credential: 1,023 bytes. */
const ID_LENGTH = 1_364;
const CLIENT_DATA_LENGTH = 4_096;

const credentialId = bytes('3q2-7wAAAAAAAAAAAAAAAA', 'The id of the credential.', ID_LENGTH);
const clientDataJSON = bytes(
  'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0',
  'What the browser has given to be signed: the challenge and the address of the page.',
  CLIENT_DATA_LENGTH,
);

/** What `navigator.credentials.get` returns, in an input. */
export const passkeyAnswer = z
  .strictObject({
    id: credentialId,
    clientDataJSON,
    authenticatorData: bytes(
      'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ',
      'What the authenticator says.',
      2_048,
    ),
    signature: bytes('MEUCIQ', 'The signature of both.', 2_048),
    userHandle: orNull(
      bytes('bWVtXzAx', 'Whose passkey it is, as the authenticator has stored it.', 128),
      'Null if the browser does not say it.',
    ).optional(),
  })
  .meta({ id: 'PasskeyAnswer', description: 'The answer of a passkey to a challenge.' });
export type PasskeyAnswer = z.output<typeof passkeyAnswer>;

/** The longest attestation object. Without a statement of the maker, which is not asked for, it has a few hundred bytes. */
const ATTESTATION_LENGTH = 12_000;

const PASSKEY_NAME = 'How the member knows the browser or device. Audit rows keep it.';

/** What `navigator.credentials.create` returns, in an input. */
export const addedPasskey = z
  .strictObject({
    name: label.meta({ description: PASSKEY_NAME, examples: ['Laptop'] }),
    id: credentialId,
    clientDataJSON,
    attestationObject: bytes(
      'o2NmbXRkbm9uZQ',
      'What the authenticator says about the key.',
      ATTESTATION_LENGTH,
    ),
  })
  .meta({ id: 'NewPasskey', description: 'A passkey to add.' });
export type AddedPasskey = z.output<typeof addedPasskey>;

/** The name of a passkey, in a response. */
export const passkeyName = textField('Laptop', PASSKEY_NAME);

const challenge = textField('ZjY0…', 'The bytes to sign, which can be answered once. Base64url.');
const timeout = z
  .int()
  .meta({ description: 'How long the challenge can be answered, milliseconds.', examples: [300_000] });
const credentials = (description: string) =>
  z
    .array(
      z.object({
        type: z.literal('public-key').describe('The only kind of credential.'),
        id: textField('3q2-7wAAAAAAAAAAAAAAAA', 'The id of the credential. Base64url.'),
      }),
    )
    .describe(description);

/** The argument of `PublicKeyCredential.parseRequestOptionsFromJSON`. */
export const requestOptions = z
  .object({
    challenge,
    timeout,
    rpId: textField('api.example.com', 'The host of the service, for which the passkey is.'),
    allowCredentials: credentials(
      'The passkeys that can answer. Empty: every one that the browser knows for the service.',
    ),
    userVerification: z
      .literal('required')
      .describe('The authenticator checks who uses it, by a PIN or a finger.'),
  })
  .meta({ id: 'PasskeyRequest', description: 'What a browser needs to have a passkey answer a challenge.' });

/** The argument of `PublicKeyCredential.parseCreationOptionsFromJSON`. */
export const creationOptions = z
  .object({
    challenge,
    timeout,
    rp: z
      .object({
        id: textField('api.example.com', 'The host of the service.'),
        name: textField('Tributary', 'The name of the service.'),
      })
      .describe('The service for which the passkey is.'),
    user: z
      .object({
        id: textField('bWVtXzAx', 'The id of the member. Base64url.'),
        name: textField('ann@example.com', 'The address of the member, which the browser shows.'),
        displayName: textField('ann@example.com, My company', 'The same with the name of the account.'),
      })
      .describe('The member whose passkey it is.'),
    pubKeyCredParams: z
      .array(
        z.object({
          type: z.literal('public-key').describe('The only kind of credential.'),
          alg: z.int().meta({ description: 'The number of the algorithm at COSE.', examples: [-7] }),
        }),
      )
      .describe('The signatures that the service verifies.'),
    excludeCredentials: credentials(
      'The passkeys that the member has: an authenticator that has one makes no second one.',
    ),
    authenticatorSelection: z
      .object({
        residentKey: z
          .literal('required')
          .describe('The authenticator keeps the passkey, so that nobody enters an address to sign in.'),
        requireResidentKey: z.literal(true).describe('The same for older browsers.'),
        userVerification: z.literal('required').describe('The authenticator checks who uses it.'),
      })
      .describe('What the authenticator has to do.'),
    attestation: z.literal('none').describe('The service asks nothing about the maker of the authenticator.'),
  })
  .meta({ id: 'PasskeyCreation', description: 'What a browser needs to create a passkey.' });
