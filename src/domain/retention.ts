/** What is removed after a time, in the order in which it is removed. */
export const RETENTION_KINDS = [
  'idempotency_keys',
  'identities',
  'refused_counters',
  'user_agents',
  'bodies',
  'webhook_messages',
  'emails',
] as const;
export type RetentionKind = (typeof RETENTION_KINDS)[number];

/** After how many days data of each kind is removed; 0 is never. Responses of idempotency keys: whole days, at least 1. */
export type RetentionSettings = Readonly<Record<RetentionKind, number>>;

export const DEFAULT_RETENTION: RetentionSettings = {
  idempotency_keys: 1,
  identities: 90,
  refused_counters: 90,
  user_agents: 90,
  bodies: 400,
  webhook_messages: 90,
  emails: 90,
};
