import * as z from 'zod';
import { addPasskey, listPasskeys, revokePasskey } from '../../db/passkeys.ts';
import type { Passkey } from '../../db/passkeys.ts';
import { newId } from '../../db/new-id.ts';
import type { Session, SessionMember } from '../../db/sessions.ts';
import { PASSKEY_CHALLENGE_MS } from '../../domain/passkeys.ts';
import { RAISED_MS } from '../../domain/sessions.ts';
import { sessionEnded } from '../authenticate.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, notFound, withAdvice } from '../errors.ts';
import { epochMs, idOf, orNull } from '../fields.ts';
import { addedPasskey, creationOptions, passkeyName, requestOptions } from '../passkey-fields.ts';
import {
  createChallenge,
  PASSKEY_ALGORITHMS,
  refusedPasskey,
  relyingPartyOrThrow,
  userHandleOf,
  verifyNewPasskey,
} from '../passkeys.ts';
import type { ChallengePurpose } from '../passkeys.ts';
import { anyone, consoleSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { refuseForeignSignIn } from '../session-cookie.ts';

const passkey = z
  .object({
    id: idOf('passkey'),
    name: passkeyName,
    raises: z
      .boolean()
      .describe(
        'Whether it lets a session pay, with a role that pays: only if the session could pay in which it was added.',
      ),
    createdAt: epochMs('When the passkey was added.'),
    lastUsedAt: orNull(epochMs('When the passkey was last used.'), 'Null before its first use.'),
  })
  .meta({ id: 'Passkey', description: 'A passkey of the member who is signed in.' });

function presentPasskey({ id, name, raises, createdAt, lastUsedAt }: Passkey) {
  return { id, name, raises, createdAt, lastUsedAt };
}

/** Returns the member of a session. Throws 403 for a session of a key, and for that of a link of the operator. */
function memberOf({ member }: Session): SessionMember {
  if (member !== null) return member;
  throw new ApiError('forbidden', {
    detail:
      'This session is not that of a member, and passkeys belong to members. Sign in as a member of the account.',
  });
}

/**
 * Returns whether a passkey that the session adds lets sessions pay. Throws 403 for a session that has to show first who uses it: a
 * copied link and a browser that was left open suffice for none that pays.
 */
function requireNewProof(session: Session, sendsMail: boolean, now: number): boolean {
  const { raisedKeyId, keyId, permissions, createdAt } = session;
  if (!permissions.includes('payout')) {
    if (now > createdAt + RAISED_MS) throw withAdvice('session_too_old');
    return false;
  }
  // Who has a key that may pay, and a link that was copied for another member, would otherwise be that member from then on.
  const isProven = raisedKeyId !== null && (raisedKeyId === keyId || !sendsMail);
  if (isProven) return true;
  throw new ApiError('session_not_raised', {
    detail: sendsMail
      ? 'Adding a passkey needs a link that was mailed to you and opened in this browser within the last 15 minutes, or another passkey: `POST /session/mail-link` mails one.'
      : 'Adding a passkey needs a session that may pay: enter a key with the permission "payout" first (`POST /session/raise`).',
  });
}

const listed = (rows: readonly { readonly credentialId: Buffer }[]) =>
  rows.map(({ credentialId }) => ({ type: 'public-key' as const, id: credentialId.toString('base64url') }));

/** Returns what a browser needs to have one of the passkeys answer a new challenge; without any, one that it knows. */
function requestFor(
  { secretBox, publicUrl }: HttpDeps,
  purpose: ChallengePurpose,
  rows: Parameters<typeof listed>[0],
  now: number,
): z.input<typeof requestOptions> {
  const { id: rpId } = relyingPartyOrThrow(publicUrl);
  return {
    challenge: createChallenge(secretBox, purpose, now),
    timeout: PASSKEY_CHALLENGE_MS,
    rpId,
    allowCredentials: listed(rows),
    userVerification: 'required',
  };
}

/** How members sign in and pay with passkeys. `POST /session` and `POST /session/raise` take the answers. */
export const passkeyRoutes = [
  route({
    method: 'POST',
    path: '/session/passkeys/sign-in-options',
    caller: anyone(),
    operationId: 'createPasskeySignIn',
    summary: 'Returns a challenge for signing in with a passkey.',
    description: 'Send the answer to `POST /session` within five minutes. Nothing is stored.',
    response: { status: 200, schema: requestOptions },
    errors: ['cross_origin', 'passkeys_not_possible'],
    handler: async ({ ctx, deps, now }) => {
      refuseForeignSignIn(ctx, deps.publicUrl);
      return requestFor(deps, { kind: 'sign_in' }, [], now);
    },
  }),

  route({
    method: 'POST',
    path: '/session/passkeys/raise-options',
    caller: consoleSession(null),
    operationId: 'createPasskeyRaise',
    summary: 'Returns a challenge for paying with a passkey of this member.',
    description: 'Send the answer to `POST /session/raise` within five minutes, in the same session.',
    response: { status: 200, schema: requestOptions },
    errors: ['forbidden', 'passkeys_not_possible'],
    handler: async ({ deps, session, now }) => {
      const rows = await listPasskeys(deps.sql, memberOf(session).id);
      const paying = rows.filter(({ raises }) => raises);
      return requestFor(deps, { kind: 'raise', sessionId: session.id }, paying, now);
    },
  }),

  route({
    method: 'POST',
    path: '/session/passkeys/options',
    caller: consoleSession(null),
    operationId: 'createPasskeyCreation',
    summary: 'Returns a challenge for adding a passkey to this member.',
    description:
      'Send the new credential to `POST /session/passkeys` within five minutes, in the same session. A member whose role pays needs a session that may pay: by a mailed link or another passkey, and without a mail server by a key. Any other member needs a session of the last 15 minutes.',
    response: { status: 200, schema: creationOptions },
    errors: ['forbidden', 'session_not_raised', 'session_too_old', 'passkeys_not_possible'],
    handler: async ({ deps, session, now }) => {
      const member = memberOf(session);
      requireNewProof(session, deps.sendsMail === true, now);
      const party = relyingPartyOrThrow(deps.publicUrl);
      return {
        challenge: createChallenge(deps.secretBox, { kind: 'add', sessionId: session.id }, now),
        timeout: PASSKEY_CHALLENGE_MS,
        rp: { id: party.id, name: 'Tributary' },
        user: {
          id: userHandleOf(member.id),
          name: member.email,
          displayName: `${member.email}, ${session.accountName}`,
        },
        pubKeyCredParams: PASSKEY_ALGORITHMS.map((alg) => ({ type: 'public-key' as const, alg })),
        excludeCredentials: listed(await listPasskeys(deps.sql, member.id)),
        authenticatorSelection: {
          residentKey: 'required' as const,
          requireResidentKey: true as const,
          userVerification: 'required' as const,
        },
        attestation: 'none' as const,
      };
    },
  }),

  route({
    method: 'GET',
    path: '/session/passkeys',
    caller: consoleSession(null),
    operationId: 'listPasskeys',
    summary: 'Lists the passkeys of this member, oldest first.',
    response: {
      status: 200,
      schema: z
        .object({ passkeys: z.array(passkey).describe('The passkeys that were not revoked.') })
        .meta({ id: 'PasskeyList', description: 'The passkeys of a member, oldest first.' }),
    },
    errors: ['forbidden'],
    handler: async ({ deps, session }) => ({
      passkeys: (await listPasskeys(deps.sql, memberOf(session).id)).map(presentPasskey),
    }),
  }),

  route({
    method: 'POST',
    path: '/session/passkeys',
    caller: consoleSession(null, { addressLimit: 'signIn' }),
    operationId: 'addPasskey',
    summary: 'Adds a passkey to this member.',
    description:
      'The credential answers a challenge of `POST /session/passkeys/options`. The passkey signs in to this account with the role that the member has at each call.',
    body: addedPasskey,
    response: { status: 201, schema: passkey },
    errors: [
      'forbidden',
      'session_not_raised',
      'session_too_old',
      'invalid_passkey',
      'passkey_exists',
      'too_many_passkeys',
      'passkeys_not_possible',
    ],
    handler: async ({ deps, session, body: { name, ...sent }, now }) => {
      const member = memberOf(session);
      const raises = requireNewProof(session, deps.sendsMail === true, now);
      const { publicUrl, secretBox } = deps;
      const purpose = { kind: 'add', sessionId: session.id } as const;
      const { answered, ...credential } = await verifyNewPasskey(sent, purpose, {
        publicUrl,
        secretBox,
        now,
      });
      const added = { id: newId('passkey'), memberId: member.id, name, raises, ...credential };
      const result = await addPasskey(deps.sql, added, answered, now);
      if (result === 'no_member') throw sessionEnded();
      if (result === 'challenge_used') throw refusedPasskey();
      if (typeof result === 'string') throw withAdvice(result);
      return presentPasskey(result);
    },
  }),

  route({
    method: 'POST',
    path: '/session/passkeys/:passkeyId/revoke',
    caller: consoleSession(null),
    operationId: 'revokePasskey',
    ids: { passkeyId: 'passkey' },
    summary: 'Revokes a passkey of this member.',
    description:
      'It signs in no more, and its key is erased. Sessions that it has started go on: end them with `POST /sessions/{id}/end`. Revoking twice changes nothing.',
    response: {
      status: 200,
      schema: z
        .object({ id: idOf('passkey') })
        .meta({ id: 'RevokedPasskey', description: 'A passkey that was revoked.' }),
    },
    errors: ['forbidden'],
    handler: async ({ deps, session, ids, now }) => {
      if (!(await revokePasskey(deps.sql, memberOf(session).id, ids.passkeyId, now))) throw notFound();
      return { id: ids.passkeyId };
    },
  }),
];
