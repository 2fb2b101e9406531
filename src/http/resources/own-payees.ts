import * as z from 'zod';
import { confirmPayeeChange, findCodeAddress, requestPayeeChange } from '../../db/payee-changes.ts';
import type { CreatorScope } from '../../db/creator-sessions.ts';
import { PAYEE_CODE_ATTEMPTS, PAYEE_CODES_IN_AN_HOUR, typedCode } from '../../domain/payee-code.ts';
import { maskEmail } from '../../domain/payee.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, foundOrThrow, tooManyEmails, withAdvice } from '../errors.ts';
import { epochMs, idOf, textField } from '../fields.ts';
import { addressCaller } from '../rate-limits.ts';
import { creatorSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { maskedAddress } from '../member-fields.ts';
import { creatorPayee, ownPayee, presentCreatorPayee } from './payees.ts';

// A creator sets the own payee. The founder's view of the creator's page has no such routes: no key can do it.

/** Whether and how the creator sets the own payee, on the creator's page. */
export const codeAddress = z
  .object({
    maskedAddress,
    from: epochMs('From when on codes are sent to it: seven days after the address was set.'),
  })
  .describe(
    'Where codes go with which the creator sets the own payee. Absent where only the founder sets it: without a mail server, an address, or a confirmation of a changed address.',
  );

/** Returns where codes for a creator go. Empty where only the founder sets the payee. */
export async function presentCodeAddress(deps: Pick<HttpDeps, 'sql' | 'sendsMail'>, scope: CreatorScope) {
  const found = deps.sendsMail === true ? await findCodeAddress(deps.sql, scope) : undefined;
  return found === undefined
    ? {}
    : { payeeCodes: { maskedAddress: maskEmail(found.address), from: found.from } };
}

const change = z
  .object({
    id: idOf('payeeChange', 'The id to enter the code for.'),
    maskedAddress,
    expiresAt: epochMs('Until when the code is valid.'),
  })
  .meta({ id: 'PayeeChange', description: 'A payee that waits for the code of its creator.' });

const setPayee = z
  .object({ payee: creatorPayee })
  .meta({ id: 'OwnPayee', description: "The creator's payee." });

export const ownPayeeRoutes = [
  route({
    method: 'POST',
    path: '/creator/payee-changes',
    caller: creatorSession,
    operationId: 'requestPayeeChange',
    summary: 'Mails a code to the creator with which a new payee is set.',
    description:
      'The code goes to the `email` that the founder has stored, is valid for 15 minutes and approves this payee only. It replaces an earlier ' +
      `code. At most ${PAYEE_CODES_IN_AN_HOUR} within an hour.`,
    body: ownPayee,
    response: { status: 202, schema: change },
    errors: ['mail_not_configured', 'no_code_address', 'too_many_emails'],
    handler: async ({ deps, session, body, idGenerator }) => {
      if (deps.sendsMail !== true) {
        throw new ApiError('mail_not_configured', {
          detail: 'Nothing was sent. The founder of the app sets where your payouts go: ask there.',
        });
      }
      const ids = { id: idGenerator.id('payeeChange'), emailId: idGenerator.id('email') };
      const result = await requestPayeeChange({ ...deps, sql: deps.patientSql }, session, body, ids);
      if (result.outcome === 'no_address') throw withAdvice('no_code_address');
      if (result.outcome === 'too_many') throw tooManyEmails(result.retryAfterSeconds, 'creator');
      return { id: ids.id, maskedAddress: maskEmail(result.address), expiresAt: result.expiresAt };
    },
  }),

  route({
    method: 'POST',
    path: '/creator/payee-changes/:id/confirm',
    caller: creatorSession,
    operationId: 'confirmPayeeChange',
    summary: 'Sets the new payee of the creator, with the code from the mail.',
    description:
      'Appends a version, which waits like every other one: runs of payouts leave the creator out until it counts. ' +
      `A code may be entered ${PAYEE_CODE_ATTEMPTS} times.`,
    ids: { id: 'payeeChange' },
    body: z
      .strictObject({
        code: textField('K7QM-2XPD', 'The code. Capitals, spaces and dashes make no difference.').max(40),
      })
      .meta({ id: 'EnteredCode', description: 'The code from the mail.' }),
    response: { status: 200, schema: setPayee },
    errors: ['payee_code_wrong', 'payee_code_ended'],
    rateLimit: { name: 'signIn', caller: ({ ctx }) => addressCaller(ctx.ip) },
    handler: async ({ deps, session, ids, body, idGenerator }) => {
      const entered = { id: ids.id, payeeId: idGenerator.id('payee'), code: typedCode(body.code) };
      const result = foundOrThrow(
        await confirmPayeeChange({ ...deps, sql: deps.patientSql }, session, entered),
      );
      if (result.outcome === 'ended') throw withAdvice('payee_code_ended');
      if (result.outcome === 'wrong') {
        const left = result.attemptsLeft;
        throw new ApiError('payee_code_wrong', {
          detail:
            left === 0
              ? 'It was wrong too often. Ask for another code.'
              : `${left} more ${left === 1 ? 'attempt' : 'attempts'} with this code.`,
        });
      }
      const { payee } = presentCreatorPayee(result.payee);
      return { payee: foundOrThrow(payee) };
    },
  }),
];
