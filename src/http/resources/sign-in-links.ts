import * as z from 'zod';
import { mailMemberLink, mailSignInLinks, MEMBER_MAILS_IN_AN_HOUR } from '../../db/member-links.ts';
import { maskEmail } from '../../domain/payee.ts';
import { SIGN_IN_LINK_MS } from '../../domain/sessions.ts';
import { ApiError, foundOrThrow, tooManyEmails, withAdvice } from '../errors.ts';
import { epochMs } from '../fields.ts';
import { maskedAddress } from '../member-fields.ts';
import { addressCaller, refuseBeyondLimit } from '../rate-limits.ts';
import { anyone, consoleSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { refuseForeignSignIn } from '../session-cookie.ts';

/** How members get links by mail: strangers as far as the service knows, and those who are signed in. */
export const signInLinkRoutes = [
  route({
    method: 'POST',
    path: '/sign-in-links',
    caller: anyone(),
    operationId: 'mailSignInLink',
    summary: 'Mails a sign-in link to a member.',
    description:
      'The answer and its time are the same for an unknown address, to which nothing is mailed. The link works once, within 15 minutes; three that were not used are valid at a time. A member of several accounts gets a mail for each of the ten that were used last.',
    body: z
      .strictObject({
        email: z
          .email()
          .max(320)
          .meta({ description: 'The address of a member. Ignores case.', examples: ['ann@example.com'] }),
      })
      .meta({ id: 'SignInLinkRequest', description: 'Who wants to sign in.' }),
    response: {
      status: 202,
      schema: z.object({ expiresAt: epochMs('Until when a link works that was mailed now.') }).meta({
        id: 'SignInLinkRequested',
        description: 'If the address is that of a member, a mail is on its way.',
      }),
    },
    errors: ['mail_not_configured', 'cross_origin', 'unavailable'],
    rateLimit: { name: 'signIn', caller: ({ ctx }) => addressCaller(ctx.ip) },
    // The work for a known address fits into the first step.
    responseStepMs: 250,
    handler: async ({ ctx, deps, body, now }) => {
      refuseForeignSignIn(ctx, deps.publicUrl);
      if (deps.sendsMail !== true) throw withAdvice('mail_not_configured');
      refuseBeyondLimit(deps.rateLimits, 'signIn', `mail ${body.email.toLowerCase()}`);
      await mailSignInLinks(deps, body.email, now);
      return { expiresAt: now + SIGN_IN_LINK_MS };
    },
  }),

  route({
    method: 'POST',
    path: '/session/mail-link',
    caller: consoleSession(null, { addressLimit: 'signIn' }),
    operationId: 'mailRaisingLink',
    summary: 'Mails a link to the member of this session, with which it may pay for 15 minutes.',
    description: `The link works once, within 15 minutes, and raises the session of the browser in which it is opened. Three that were not used are valid at a time, and ${MEMBER_MAILS_IN_AN_HOUR.toAddress.member_sign_in} are mailed within an hour.`,
    response: {
      status: 202,
      schema: z
        .object({
          maskedRecipient: maskedAddress,
          expiresAt: epochMs('Until when the link works.'),
        })
        .meta({ id: 'MailedLink', description: 'A mail with a link that signs a member in.' }),
    },
    errors: ['forbidden', 'mail_not_configured', 'too_many_emails'],
    handler: async ({ deps, session: { member, accountId }, now }) => {
      if (member === null) {
        throw new ApiError('forbidden', {
          detail:
            'This session is not that of a member. Send a key with the permission "payout" to `POST /session/raise`.',
        });
      }
      if (deps.sendsMail !== true) throw withAdvice('mail_not_configured');
      const sent = foundOrThrow(
        await mailMemberLink(deps, accountId, member.id, { kind: 'member_sign_in', now }),
      );
      if (sent.outcome === 'too_many') throw tooManyEmails(sent.retryAfterSeconds, 'member');
      return { maskedRecipient: maskEmail(sent.address), expiresAt: sent.expiresAt };
    },
  }),
];
