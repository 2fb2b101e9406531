import * as z from 'zod';
import { COMMISSION_STATUSES, CORRECTION_REASONS } from '../db/commissions.ts';
import { PROCESSING_STATUSES } from '../domain/delivery.ts';
import { AFFILIATE_STATUSES, ATTRIBUTION_METHODS, MATCH_METHODS } from '../domain/attribution.ts';
import { ENTRY_CATEGORIES, ENTRY_KINDS } from '../domain/entry.ts';
import { COMMISSION_KINDS } from '../domain/payment-snapshot.ts';
import { EVENT_OUTCOMES } from '../domain/event-outcome.ts';
import { ENVIRONMENTS, EVENT_KINDS } from '../domain/events.ts';
import { PERMISSIONS } from '../domain/keys.ts';
import { CODE_STATES } from '../domain/event-history.ts';
import { CODE_NAMESPACES } from '../domain/purchase-codes.ts';
import { DELIVERY_OUTCOMES } from '../domain/reprocess.ts';
import { LIKELY_CAUSES } from '../domain/likely-causes.ts';
import { PROVIDER_NAMES } from '../providers/index.ts';

// Fields with a closed set of values. Several resources and filters share each of them.

export const affiliateStatus = z
  .enum(AFFILIATE_STATUSES)
  .describe(
    'Only an `active` affiliate earns from new payments. Links of a `paused` one still count clicks; those of a `removed` one only redirect.',
  );

export const commissionStatus = z
  .enum(COMMISSION_STATUSES)
  .describe('`pending` before `dueAt`, `matured` from then on, `paid` once a payout contains it.');

export const commissionKind = z
  .enum([...COMMISSION_KINDS, ...ENTRY_KINDS])
  .describe(
    '`earning` of a payment; `reversal` for a refund or dispute (positive if it was undone); `correction` of a payment that earned twice; `bonus` or `deduction` of an entry.',
  );

export const paymentCommissionKind = z
  .enum(COMMISSION_KINDS)
  .describe(
    '`earning` of a payment; `reversal` for a refund or dispute (positive if it was undone); `correction` of a payment that earned twice.',
  );

export const entryCategory = z
  .enum(ENTRY_CATEGORIES)
  .describe(
    'What it is for. `bonus` and `fixed_fee` only add, `unreported_refund` only deducts. `opening_balance`: what was owed when the app began to use the service. `write_off`: a debt that nobody collects.',
  );

export const correctionReason = z.enum(CORRECTION_REASONS).describe('Why the correction was appended.');

export const environment = z
  .enum(ENVIRONMENTS)
  .describe("The provider's environment. Nothing from `sandbox` earns a commission.");

export const eventKind = z
  .enum(EVENT_KINDS)
  .describe('What the event reports, the same word for all providers.');

export const eventOutcome = z
  .enum(EVENT_OUTCOMES)
  .describe(
    '`earned` a commission; `reversed` one, or a part of it, for a refund or dispute; `nothing`; `waiting` for its evaluation, an exchange rate or the payment of a refund; `sandbox`, which never earns.',
  );

export const likelyCause = z
  .enum(LIKELY_CAUSES)
  .describe('Why the payment earned nothing. Stable. docs/contract.md lists the causes.');

export const matchMethod = z
  .enum(MATCH_METHODS)
  .describe(
    'How the install was matched: `claim_token` of a click, `code` that the user entered, `deferred` by the address of a click.',
  );

export const attributionMethod = z
  .enum(ATTRIBUTION_METHODS)
  .describe(
    'How the user came to the affiliate: by a device, with the `claim_token` of a click, a `code` that was entered, or `deferred` by the address of a click; by the `purchase_code` of a payment; or `manual`, because somebody said so.',
  );

export const codeNamespace = z
  .enum(CODE_NAMESPACES)
  .describe(
    'Where purchases have it from: an offer code of `app_store` or `play_store`, a promotion code of `stripe`, a discount of `paddle`, the attribute `tributary_code` that the app sets at RevenueCat (`attribute`), or `$campaign` there (`campaign`).',
  );

export const codeState = z
  .enum(CODE_STATES)
  .describe(
    'Whether the code was in force when the customer used it: `in_force`, also where it takes no user from another affiliate; `unregistered`; `registered_later` than that; `deactivated` before it; `creator_removed`; `user_attributed`, where a free period began with it and a user of the subscription belongs to an affiliate; or `off`, because codes attribute nothing in the app.',
  );

export const processingStatus = z
  .enum(PROCESSING_STATUSES)
  .describe(
    '`received` and `processing` are open. The others are final: `processed`, `duplicate` of an earlier event, `ignored` and `failed` with a reason, `rejected` because the signature or token is wrong.',
  );

export const deliveryOutcome = z
  .enum(DELIVERY_OUTCOMES)
  .describe('The outcome of the deliveries, as `GET /apps/:appId/diagnostics/webhooks` lists it.');

export const provider = z
  .enum(PROVIDER_NAMES)
  .meta({ description: 'The billing provider.', examples: ['revenuecat'] });

/** The permissions of a key. */
export const permissions = z
  .array(z.enum(PERMISSIONS))
  .meta({ description: 'What the key may do.', examples: [['read', 'write']] });
