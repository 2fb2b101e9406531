import { componentMinor } from './events.ts';
import type { PaymentComponent, PaymentComponents } from './events.ts';
import { monthsSince } from './calendar.ts';
import { commissionCents, share } from './money.ts';
import type { BindingId, EventId, PolicyId, PolicyVersionId } from './ids.ts';

/**
 * What a rate applies to: what the customer paid (`gross`), without tax (`net_of_tax`), or without tax and what the store keeps
 * (`proceeds`).
 */
export const BASE_KINDS = ['gross', 'net_of_tax', 'proceeds'] as const;
export type BaseKind = (typeof BASE_KINDS)[number];

/** Where a component of a payment is from: stated by a provider, estimated by one, or assumed by the policy. */
export type ComponentOrigin = 'stated' | 'estimated' | 'assumed';

/** A range of whole numbers: `from` is inclusive. */
export interface NumberRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** When a rule applies. A missing condition is met. */
export interface PolicyCondition {
  readonly productIds?: readonly string[] | undefined;
  readonly stores?: readonly string[] | undefined;
  /** The place of the payment among those of its customer, from 1. `to` is inclusive. */
  readonly paymentNumber?: NumberRange | undefined;
  /** Whole months since the customer's first payment. `below` is exclusive. */
  readonly monthsSinceFirst?:
    | { readonly from?: number | undefined; readonly below?: number | undefined }
    | undefined;
}

/** Either `percentBps` or `flatCents`. */
export interface PolicyRule {
  readonly when?: PolicyCondition | undefined;
  /** Basis points of the base. */
  readonly percentBps?: number | undefined;
  /** US cents per payment: at most the base, unless `aboveBase` is true. */
  readonly flatCents?: number | undefined;
  readonly aboveBase?: true | undefined;
}

/** The contents of a policy version. The first rule that applies counts. */
export interface PolicyTerms {
  readonly base: BaseKind;
  /** What counts where nothing is known of a payment's tax or store fee. */
  readonly assumed?:
    | {
        /** A share of what was paid. Default: 0. */
        readonly taxBps?: number | undefined;
        /** A share of what was paid without tax, by store. Default: 3000 for the App Store, the Mac App Store and Google Play, otherwise 0. */
        readonly feeBps?: Readonly<Record<string, number>> | undefined;
      }
    | undefined;
  readonly rules: readonly PolicyRule[];
}

/** What an app store keeps unless a policy says otherwise, basis points. */
const APP_STORE_FEE_BPS = 3_000;
const APP_STORES: ReadonlySet<string> = new Set(['app_store', 'mac_app_store', 'play_store']);
const WHOLE_BPS = 10_000;

/** A payment as a policy sees it. */
export interface PolicySale {
  /** US cents. */
  readonly grossCents: number;
  /** What was paid, in minor units of its currency. */
  readonly paidMinor: number;
  readonly components: PaymentComponents;
  readonly store: string;
  readonly productId: string | null;
  readonly paymentNumber: number;
  /** Epoch ms. */
  readonly firstPaidAt: number;
  readonly occurredAt: number;
}

/** A component as it counted. */
export interface CountedComponent {
  /** Minor units of the payment's currency. */
  readonly minor: number;
  readonly origin: ComponentOrigin;
}

/** What an earning by a policy was computed from. Stored with it, so that it can be computed again. */
export interface PolicyInputs {
  readonly grossCents: number;
  readonly paidMinor: number;
  /** Null where the base includes it. */
  readonly tax: CountedComponent | null;
  readonly storeFee: CountedComponent | null;
  readonly store: string;
  readonly productId: string | null;
  readonly paymentNumber: number;
  readonly firstPaidAt: number;
  readonly monthsSinceFirst: number;
}

/** What a payment earns by a rule of a policy. */
export interface PolicyEarning {
  readonly ruleIndex: number;
  /** 0 for a flat rule. */
  readonly rateBps: number;
  /** Null for a percentage. */
  readonly flatCents: number | null;
  readonly base: BaseKind;
  /** Whether a component of the base was not stated by a provider. */
  readonly baseEstimated: boolean;
  readonly baseCents: number;
  readonly amountCents: number;
  readonly inputs: PolicyInputs;
}

/** Returns what a payment earns by the first rule that applies. Null if none does. */
export function earnByPolicy(terms: PolicyTerms, sale: PolicySale): PolicyEarning | null {
  const months = monthsSince(sale.firstPaidAt, sale.occurredAt);
  const ruleIndex = terms.rules.findIndex(({ when = {} }) => applies(when, sale, months));
  return ruleIndex === -1 ? null : earnByRule(terms, ruleIndex, sale);
}

/** Returns what a payment earns by one rule of a policy, whether it applies or not. */
export function earnByRule(terms: PolicyTerms, ruleIndex: number, sale: PolicySale): PolicyEarning {
  const rule = terms.rules[ruleIndex];
  if (rule === undefined) throw new Error(`the policy has no rule ${ruleIndex}`);
  const { tax, storeFee } = countedComponents(terms, sale);
  const { grossCents, paidMinor, store, productId, paymentNumber, firstPaidAt } = sale;
  const keptMinor = Math.max(0, paidMinor - (tax?.minor ?? 0) - (storeFee?.minor ?? 0));
  const baseCents = share(grossCents, keptMinor, paidMinor);
  const flatCents = rule.flatCents ?? null;
  const rateBps = flatCents === null ? (rule.percentBps ?? 0) : 0;
  return {
    ruleIndex,
    rateBps,
    flatCents,
    base: terms.base,
    baseEstimated: [tax, storeFee].some((part) => part !== null && part.origin !== 'stated'),
    baseCents,
    amountCents: amountOf({ flatCents, rateBps, isAboveBase: rule.aboveBase === true }, baseCents),
    inputs: {
      grossCents,
      paidMinor,
      tax,
      storeFee,
      store,
      productId,
      paymentNumber,
      firstPaidAt,
      monthsSinceFirst: monthsSince(firstPaidAt, sale.occurredAt),
    },
  };
}

function amountOf(
  {
    flatCents,
    rateBps,
    isAboveBase,
  }: { readonly flatCents: number | null; readonly rateBps: number; readonly isAboveBase: boolean },
  baseCents: number,
): number {
  if (flatCents === null) return commissionCents(baseCents, rateBps);
  return isAboveBase ? flatCents : Math.min(flatCents, baseCents);
}

function applies(when: PolicyCondition, sale: PolicySale, months: number): boolean {
  const { productIds, stores, paymentNumber = {}, monthsSinceFirst = {} } = when;
  return (
    (productIds === undefined || productIds.some((id) => id === sale.productId)) &&
    (stores === undefined || stores.includes(sale.store)) &&
    sale.paymentNumber >= (paymentNumber.from ?? 1) &&
    sale.paymentNumber <= (paymentNumber.to ?? Infinity) &&
    months >= (monthsSinceFirst.from ?? 0) &&
    months < (monthsSinceFirst.below ?? Infinity)
  );
}

/** Returns the components that the base leaves out, as they are known, else as the policy assumes. */
function countedComponents(
  { base, assumed = {} }: PolicyTerms,
  { components, paidMinor, store }: PolicySale,
): Pick<PolicyInputs, 'tax' | 'storeFee'> {
  if (base === 'gross') return { tax: null, storeFee: null };
  const tax = counted(components.tax, paidMinor, share(paidMinor, assumed.taxBps ?? 0, WHOLE_BPS));
  if (base === 'net_of_tax') return { tax, storeFee: null };
  const ofStore = Object.entries(assumed.feeBps ?? {}).find(([name]) => name === store)?.[1];
  const feeBps = ofStore ?? (APP_STORES.has(store) ? APP_STORE_FEE_BPS : 0);
  const assumedFee = share(Math.max(0, paidMinor - tax.minor), feeBps, WHOLE_BPS);
  return { tax, storeFee: counted(components.storeFee, paidMinor, assumedFee) };
}

function counted(
  component: PaymentComponent | undefined,
  paidMinor: number,
  assumedMinor: number,
): CountedComponent {
  if (component === undefined) return { minor: assumedMinor, origin: 'assumed' };
  return {
    minor: componentMinor(component, paidMinor),
    origin: 'minor' in component ? 'stated' : 'estimated',
  };
}

/** What an event states about the components of a payment. */
export interface StatedComponents extends PaymentComponents {
  readonly eventId: EventId;
  readonly source: string;
  readonly productId?: string;
  /** Whether the event states the amount of the payment itself, in its currency: only then its amounts are parts of it. */
  readonly isSameAmount: boolean;
}

/** Orders events whatever their order of arrival: those of the payment's own provider first, then by their ids. */
const byOrigin = (ownSource: string) => (a: StatedComponents, b: StatedComponents) =>
  Number(a.source !== ownSource) - Number(b.source !== ownSource) || (a.eventId < b.eventId ? -1 : 1);

/** Returns the product of a payment of all that its events state. Null if none states one. */
export function chooseProduct(stated: readonly StatedComponents[], ownSource: string): string | null {
  return (
    stated.filter(({ productId }) => productId !== undefined).toSorted(byOrigin(ownSource))[0]?.productId ??
    null
  );
}

/**
 * Returns the components of a payment of all that its events state, in whatever order they came: stated before estimated, then
 * those of the payment's own provider, then the event with the lowest id.
 */
export function chooseComponents(stated: readonly StatedComponents[], ownSource: string): PaymentComponents {
  const choose = (name: keyof PaymentComponents): PaymentComponent | undefined =>
    stated
      .flatMap((one) => {
        const component = one[name];
        return component === undefined || ('minor' in component && !one.isSameAmount)
          ? []
          : [{ ...one, component }];
      })
      .toSorted(
        (a, b) => Number('ppm' in a.component) - Number('ppm' in b.component) || byOrigin(ownSource)(a, b),
      )[0]?.component;
  const tax = choose('tax');
  const storeFee = choose('storeFee');
  return { ...(tax === undefined ? {} : { tax }), ...(storeFee === undefined ? {} : { storeFee }) };
}

/** The policy version in effect for a creator. */
export interface AssignedPolicy {
  /** What the policy is assigned to. That of a creator goes before the creator's own rate, that of a group or an app after it. */
  readonly scope: 'affiliate' | 'group' | 'app';
  readonly versionId: PolicyVersionId;
  readonly terms: PolicyTerms;
}

/** Returns the policy if it counts, else null. A creator's own rate goes before the policies of group and app. */
export function policyThatCounts<T extends Pick<AssignedPolicy, 'scope'>>(
  assigned: T | null,
  ownRateBps: number | null,
): T | null {
  return assigned !== null && (assigned.scope === 'affiliate' || ownRateBps === null) ? assigned : null;
}

/** What a binding adds in an app with policies. */
export interface PolicyContext {
  /** The binding with which the customer's payments are numbered. */
  readonly subjectId: BindingId;
  /** How many payments of the customer have a number. */
  readonly payments: number;
  /** The time of the first one. Null before it. */
  readonly firstPaidAt: number | null;
  /** Whether the customer has attributed payments from before the app had policies, and none has a number yet. */
  readonly hasUnnumbered: boolean;
  readonly assigned: AssignedPolicy | null;
}

/** The policy of a commission, as it is shown beside its rate. */
export interface ShownPolicy {
  readonly policyId: PolicyId;
  /** The current name. */
  readonly name: string;
  readonly policyVersionId: PolicyVersionId;
  readonly version: number;
  readonly ruleIndex: number;
  readonly base: BaseKind;
  readonly baseEstimated: boolean;
  /** Absent for a percentage. */
  readonly flatCents?: number;
}
