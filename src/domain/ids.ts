/**
 * Ids are TypeIDs: a prefix that names the resource, `_`, and a UUIDv7 in 26 characters of base32. Branded types keep
 * the compiler from accepting one kind for another, and one domain type per prefix does the same in the database.
 */
export const ID_PREFIXES = {
  account: 'acct',
  app: 'app',
  affiliate: 'aff',
  link: 'lnk',
  click: 'clk',
  attribution: 'att',
  event: 'evt',
  delivery: 'del',
  commission: 'com',
  entry: 'ent',
  group: 'grp',
  policy: 'pol',
  policyVersion: 'plv',
  manualAttribution: 'mat',
  code: 'cod',
  payout: 'pay',
  transfer: 'trf',
  payoutBlock: 'pbk',
  payoutRun: 'run',
  payoutRunItem: 'pit',
  payoutFile: 'pfl',
  payee: 'pye',
  payeeChange: 'pch',
  email: 'eml',
  key: 'key',
  session: 'ses',
  member: 'mem',
  passkey: 'psk',
  webhookEndpoint: 'whe',
  webhookMessage: 'msg',
  alert: 'alr',
  /** Internal: these ids never leave the service, except those of reprocess runs and erasures. */
  secret: 'sec',
  payoutRequest: 'req',
  payment: 'pmt',
  adjustment: 'adj',
  binding: 'bnd',
  reprocessRun: 'rpr',
  installation: 'ins',
  erasure: 'ers',
  audit: 'aud',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

declare const kind: unique symbol;
export type Id<K extends IdKind> = string & { readonly [kind]: K };

export type AccountId = Id<'account'>;
export type AppId = Id<'app'>;
export type AffiliateId = Id<'affiliate'>;
export type LinkId = Id<'link'>;
export type ClickId = Id<'click'>;
export type AttributionId = Id<'attribution'>;
export type EventId = Id<'event'>;
export type DeliveryId = Id<'delivery'>;
export type CommissionId = Id<'commission'>;
export type EntryId = Id<'entry'>;
export type GroupId = Id<'group'>;
export type PolicyId = Id<'policy'>;
export type CodeId = Id<'code'>;
export type ManualAttributionId = Id<'manualAttribution'>;
export type PolicyVersionId = Id<'policyVersion'>;
export type PayoutId = Id<'payout'>;
export type TransferId = Id<'transfer'>;
export type PayoutBlockId = Id<'payoutBlock'>;
export type PayoutRunId = Id<'payoutRun'>;
export type PayoutRunItemId = Id<'payoutRunItem'>;
export type PayoutFileId = Id<'payoutFile'>;
export type PayeeId = Id<'payee'>;
export type EmailId = Id<'email'>;
export type PayeeChangeId = Id<'payeeChange'>;
export type KeyId = Id<'key'>;
export type SessionId = Id<'session'>;
export type MemberId = Id<'member'>;
export type PasskeyId = Id<'passkey'>;
export type WebhookEndpointId = Id<'webhookEndpoint'>;
export type WebhookMessageId = Id<'webhookMessage'>;
export type AlertId = Id<'alert'>;
export type SecretId = Id<'secret'>;
export type PayoutRequestId = Id<'payoutRequest'>;
export type PaymentId = Id<'payment'>;
export type AdjustmentId = Id<'adjustment'>;
export type BindingId = Id<'binding'>;
export type ReprocessRunId = Id<'reprocessRun'>;
export type InstallationId = Id<'installation'>;
export type ErasureId = Id<'erasure'>;

/** 26 base32 characters, the first at most 7: a UUID has 128 bits, and 26 characters can represent 130. */
const BODY = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** Whether `text` is an id of that kind. The caller responds to any other text with 404, as to an unknown id. */
export function isId<K extends IdKind>(idKind: K, text: string): text is Id<K> {
  const prefix = `${ID_PREFIXES[idKind]}_`;
  return text.startsWith(prefix) && BODY.test(text.slice(prefix.length));
}
