import * as z from 'zod';
import type { TooEarly } from '../../db/effective-from.ts';
import { isTooEarly } from '../../db/effective-from.ts';
import {
  createPolicy,
  findPolicy,
  listPolicies,
  listVersions,
  publishVersion,
  updatePolicy,
} from '../../db/policies.ts';
import type { Policy, PolicyVersion } from '../../db/policies.ts';
import { addMonths } from '../../domain/calendar.ts';
import { PPM } from '../../domain/events.ts';
import { share } from '../../domain/money.ts';
import { earnByPolicy } from '../../domain/policy.ts';
import type { PolicySale } from '../../domain/policy.ts';
import { policySentences } from '../../domain/policy-sentences.ts';
import { ApiError, foundOrThrow, invalidField } from '../errors.ts';
import {
  booleanText,
  cents,
  epochMs,
  idOf,
  label,
  orNull,
  rateBps,
  textField,
  wholeNumber,
} from '../fields.ts';
import { instantInBody } from '../instants.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, integerKey, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { policyTerms, presentedTerms, presentTerms, sentences, store, termsBytes } from '../policy-fields.ts';
import { accountApp, withPermission } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const terms = z.strictObject(policyTerms);

const version = z
  .object({
    id: idOf('policyVersion'),
    policyId: idOf('policy'),
    version: wholeNumber(1, 1_000_000).describe('Counted from 1.'),
    effectiveFrom: epochMs('Payments from then on earn by this version, until another one takes effect.'),
    terms: presentedTerms,
    sentences,
    createdAt: epochMs('When it was published.'),
  })
  .meta({ id: 'PolicyVersion', description: 'The rules of a policy from an instant on. Never changed.' });

const policy = z
  .object({
    id: idOf('policy'),
    name: textField('Standard', 'The name, which creators see, too.'),
    current: orNull(version, 'The version in effect. Null before the first one.'),
    next: orNull(version, 'The version that takes effect next. Null without one.'),
    createdAt: epochMs('When it was created.'),
    archivedAt: epochMs('Since when it is archived. Absent if it is not.').optional(),
  })
  .meta({ id: 'Policy', description: 'A commission policy: what payments earn, in versions.' });

/** 50 % of the proceeds in the first year, then 20 %. */
const EXAMPLE_TERMS = {
  base: 'proceeds' as const,
  rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5_000 }, { percentBps: 2_000 }],
};

const named = z
  .strictObject({ name: label.meta({ description: 'Creators see it, too.', examples: ['Standard'] }) })
  .meta({ id: 'PolicyName', description: 'The name of a policy.' });

const changed = z
  .strictObject({
    name: named.shape.name.optional(),
    archived: z
      .boolean()
      .describe('Whether lists leave it out. One that is assigned, now or later, cannot be archived.')
      .optional(),
  })
  .meta({
    id: 'PolicyChange',
    description: 'What to change of a policy. Absent fields stay.',
    examples: [{ name: 'Standard' }],
  });

export const effectiveFromInBody = instantInBody(
  'From when on it counts, at least two minutes ahead. Defaults to two minutes from now.',
);

const newVersion = terms.extend({ effectiveFrom: effectiveFromInBody.optional() }).meta({
  id: 'NewPolicyVersion',
  description: 'The rules of a policy from an instant on.',
  examples: [EXAMPLE_TERMS],
});

const examplePayment = z
  .strictObject({
    priceCents: wholeNumber(1, 100_000_000).meta({
      description: 'What the customer pays, US cents.',
      examples: [999],
    }),
    store: store.default('app_store'),
    productId: z
      .string()
      .max(200)
      .meta({ description: 'The product.', examples: ['pro_monthly'] })
      .optional(),
    taxBps: rateBps('The tax, as a part of the price. Absent: the policy assumes it.').optional(),
    feeBps: rateBps('The store fee, as a part of the price. Absent: the policy assumes it.').optional(),
    paymentNumber: wholeNumber(1, 100_000)
      .default(1)
      .describe('The place among the payments of the customer.'),
    monthsSinceFirst: wholeNumber(0, 1_200).default(0).describe('Whole months since the first payment.'),
  })
  .meta({ id: 'ExamplePayment', description: 'A payment to try a policy with.' });

const examples = terms
  .extend({ payments: z.array(examplePayment).min(1).max(20).describe('What to try.') })
  .meta({
    id: 'PolicyExamples',
    examples: [{ ...EXAMPLE_TERMS, payments: [{ priceCents: 999 }] }],
    description: 'Rules, and payments to try them with.',
  });

const exampleEarning = z
  .object({
    ruleIndex: orNull(wholeNumber(0, 19).describe('The rule that applies.'), 'Null if none does.'),
    baseCents: cents('What the rule applies to.'),
    baseEstimated: z.boolean().describe('Whether tax or store fee were assumed.'),
    amountCents: cents('What the creator earns.'),
  })
  .meta({ id: 'ExampleEarning', description: 'What a payment would earn.' });

const preview = z
  .object({ sentences, earnings: z.array(exampleEarning).describe('In the order of the payments.') })
  .meta({ id: 'PolicyPreview', description: 'What payments would earn.' });

function presentVersion(row: PolicyVersion) {
  return {
    id: row.id,
    policyId: row.policyId,
    version: row.version,
    effectiveFrom: row.effectiveFrom,
    ...presentTerms(row.terms),
    createdAt: row.createdAt,
  };
}

function presentPolicy({ id, name, current, next, createdAt, archivedAt }: Policy) {
  return {
    id,
    name,
    current: current && presentVersion(current),
    next: next && presentVersion(next),
    createdAt,
    ...(archivedAt === null ? {} : { archivedAt }),
  };
}

/** Returns the outcome of a change of terms. Throws 400 if it would take effect too early, and 404 for nothing. */
export function tookEffect<T extends object>(outcome: T | TooEarly | undefined): T {
  const made = foundOrThrow(outcome);
  if (!isTooEarly(made)) return made;
  throw invalidField(
    'effectiveFrom',
    'Must be at least two minutes ahead. Omit it for the earliest instant.',
  );
}

/** Each evaluation reads the terms. The database allows a little more. */
const MOST_TERMS_BYTES = 14_000;

/** The time of the first payment of an example. Any would do. */
const FIRST_PAID_AT = 1_768_435_200_000;
const PPM_PER_BPS = PPM / 10_000;

function saleOf(payment: z.output<typeof examplePayment>): PolicySale {
  const {
    priceCents,
    store: ofStore,
    productId = null,
    taxBps,
    feeBps,
    paymentNumber,
    monthsSinceFirst,
  } = payment;
  return {
    grossCents: priceCents,
    paidMinor: priceCents,
    components: {
      ...(taxBps === undefined ? {} : { tax: { minor: share(priceCents, taxBps * PPM_PER_BPS, PPM) } }),
      ...(feeBps === undefined ? {} : { storeFee: { minor: share(priceCents, feeBps * PPM_PER_BPS, PPM) } }),
    },
    store: ofStore,
    productId,
    paymentNumber,
    firstPaidAt: FIRST_PAID_AT,
    occurredAt: addMonths(FIRST_PAID_AT, monthsSinceFirst),
  };
}

export const policyRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/policies',
    caller: accountApp('read'),
    operationId: 'listPolicies',
    summary: 'Lists commission policies, oldest first.',
    query: z.object({
      ...pageQuery,
      archived: booleanText('Only archived policies, instead of the others.').optional(),
    }),
    response: { status: 200, schema: pageSchema(policy) },
    handler: async ({ deps, app, query }) => {
      const { archived = false } = query;
      // Cursors from before this filter stay valid.
      const key = { list: 'policies', appId: app.id, filters: archived ? { archived } : {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      const page = await listPolicies(deps.sql, app.id, { archived }, after, query.limit);
      return presentPage(key, page, presentPolicy);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/policies',
    caller: accountApp('write'),
    operationId: 'createPolicy',
    summary: 'Creates a commission policy without rules.',
    description:
      'It has no effect before a version is published and it is assigned to the app, a group or an affiliate.',
    body: named,
    response: { status: 201, schema: policy },
    handler: async ({ deps, app, idGenerator, body }) =>
      presentPolicy(
        foundOrThrow(
          await createPolicy(deps.sql, { id: idGenerator.id('policy'), appId: app.id, name: body.name }),
        ),
      ),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/policies/preview',
    caller: accountApp('read'),
    operationId: 'previewPolicy',
    summary: 'Computes what payments would earn by rules, without storing anything.',
    body: examples,
    response: { status: 200, schema: preview },
    handler: async ({ body }) => {
      const { payments, ...tried } = body;
      const earnings = payments.map((payment) => {
        const earned = earnByPolicy(tried, saleOf(payment));
        return earned === null
          ? { ruleIndex: null, baseCents: 0, baseEstimated: false, amountCents: 0 }
          : {
              ruleIndex: earned.ruleIndex,
              baseCents: earned.baseCents,
              baseEstimated: earned.baseEstimated,
              amountCents: earned.amountCents,
            };
      });
      return { sentences: policySentences(tried), earnings };
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/policies/:policyId',
    caller: accountApp('read'),
    operationId: 'getPolicy',
    summary: 'Retrieves a commission policy.',
    ids: { policyId: 'policy' },
    response: { status: 200, schema: policy },
    handler: async ({ deps, app, ids }) =>
      presentPolicy(foundOrThrow(await findPolicy(deps.sql, app.id, ids.policyId))),
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/policies/:policyId',
    caller: accountApp('write'),
    operationId: 'updatePolicy',
    summary: 'Renames a commission policy, archives it or brings it back.',
    description:
      'An archived policy is left out of the list, and cannot be assigned. What was earned by it stays.',
    ids: { policyId: 'policy' },
    body: changed,
    response: { status: 200, schema: policy },
    errors: ['policy_assigned'],
    handler: async ({ deps, app, ids, body }) => {
      const { name = null, archived = null } = body;
      const outcome = await updatePolicy(deps.sql, app.id, ids.policyId, { name, archived });
      if (outcome === 'assigned') {
        throw new ApiError('policy_assigned', {
          detail:
            'The policy is in effect for the app, a group or an affiliate, or will be. Assign another one there first.',
        });
      }
      return presentPolicy(foundOrThrow(outcome));
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/policies/:policyId/versions',
    caller: accountApp('read'),
    operationId: 'listPolicyVersions',
    summary: 'Lists the versions of a commission policy, the last one first.',
    description: CSV_LIST,
    ids: { policyId: 'policy' },
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(version), asCsv: true },
    handler: async ({ deps, app, ids, query }) => {
      const { policyId } = ids;
      foundOrThrow(await findPolicy(deps.sql, app.id, policyId));
      const key = { list: 'policy versions', appId: app.id, filters: { policyId } };
      const after = decodeCursor(key, integerKey, query.cursor);
      const page = await listVersions(deps.sql, app.id, policyId, after, query.limit);
      return presentPage(key, page, presentVersion);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/policies/:policyId/versions',
    caller: accountApp('write'),
    operationId: 'publishPolicyVersion',
    summary: 'Publishes a version of a commission policy.',
    description:
      'Payments of customers from `effectiveFrom` on earn by it, whenever they are reported; earlier ones do not. A version is ' +
      'never changed: publish another one. Of two with the same `effectiveFrom`, the last one counts.',
    ids: { policyId: 'policy' },
    body: newVersion,
    response: { status: 201, schema: version },
    errors: ['session_not_raised'],
    handler: async (call) => {
      const { app, ids, idGenerator } = call;
      const { effectiveFrom = null, ...published } = call.body;
      if (termsBytes(published) > MOST_TERMS_BYTES)
        throw invalidField(
          'rules',
          `Must be shorter: all rules together have at most ${MOST_TERMS_BYTES} bytes of JSON.`,
        );
      const paysAboveBase = published.rules.some(({ aboveBase }) => aboveBase === true);
      const { deps } = paysAboveBase ? withPermission(call, 'payout') : call;
      return presentVersion(
        tookEffect(
          await publishVersion(deps.sql, {
            id: idGenerator.id('policyVersion'),
            appId: app.id,
            policyId: ids.policyId,
            effectiveFrom,
            terms: published,
          }),
        ),
      );
    },
  }),
];
