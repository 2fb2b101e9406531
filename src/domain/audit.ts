import type { AffiliateId, KeyId, SessionId } from './ids.ts';

/**
 * Who makes a change. `sign_in`: a person who spends a sign-in link, before the session exists. `service`: no caller, as for
 * an endpoint that fails for too long. `database`: nobody named themselves, as in a statement that a person sends by hand.
 */
export const ACTOR_KINDS = [
  'key',
  'session',
  'creator',
  'sign_in',
  'operator',
  'command_line',
  'service',
  'database',
] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Who makes a change, as the statement that makes it says. */
export interface Actor {
  readonly kind: Exclude<ActorKind, 'database'>;
  readonly keyId?: KeyId;
  readonly sessionId?: SessionId;
  /** The creator. */
  readonly affiliateId?: AffiliateId;
  readonly requestId?: string;
}

/** What a change concerns. */
export const AUDITED_OBJECTS = [
  'account',
  'account_key',
  'member',
  'passkey',
  'session',
  'sign_in_link',
  'creator_sign_in_link',
  'creator_session',
  'app',
  'sdk_key',
  'webhook_secret',
  'identity_secret',
  'affiliate',
  'affiliate_group',
  'group_membership',
  'policy',
  'policy_version',
  'policy_assignment',
  'manual_attribution',
  'code',
  'link',
  'entry',
  'payout',
  'payout_transfer',
  'other_transfer',
  'payout_block',
  'payout_run',
  'payout_file_download',
  'payee',
  'webhook_endpoint',
  'erasure',
  'reprocess_run',
] as const;
export type AuditedObject = (typeof AUDITED_OBJECTS)[number];

/** What was done to it. */
export const AUDIT_ACTIONS = [
  'created',
  'changed',
  'replaced',
  'revoked',
  'started',
  'raised',
  'ended',
  'requested',
  'cancelled',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];
