import { useQuery } from '@tanstack/react-query';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useRetryKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { EVENT_KINDS } from '../words.ts';

export type ManualAttribution = Schemas['ManualAttribution'];

/** A payment that earned nothing, and who paid: a user, or what stands for one. */
export interface UnattributedPayment {
  /** The user, or the id of the subscription or of the anonymous customer. */
  readonly customerUserId: string;
  readonly payer: Payer;
  /** When the customer paid, epoch ms. */
  readonly occurredAt: number;
}

type Payer = 'user' | Schemas['AttributableKey']['standsFor'];

/** Who paid, in words. */
export const PAYERS: Readonly<Record<Payer, string>> = {
  user: 'user',
  subscription: 'subscription',
  anonymous_customer: 'anonymous customer',
};

/** The queries whose answers an attribution makes stale. */
const staleAfterAttribution = (appId: string) =>
  [
    ['manual-attributions', appId],
    ['unattributed', appId],
    ['unattributed-summary', appId],
    ['explanation', appId],
    ['events', appId],
    ['commissions', appId],
    ['creator', appId],
  ] as const;

/** The causes of payments that can be given to a creator. For the others, the creator is known, or the payment waits. */
const CAUSES_TO_ATTRIBUTE: ReadonlySet<string> = new Set<Schemas['UnattributedEvent']['likelyCause']>([
  'missing_user_id',
  'anonymous_user_id',
  'user_never_identified',
  'user_id_mismatch',
  'user_not_attributed',
  'outside_attribution_window',
  'affiliate_paused',
  'affiliate_removed',
  'ambiguous_code',
  'test_key_only',
]);

const PAID_KINDS: ReadonlySet<string> = new Set<keyof typeof EVENT_KINDS>([
  'purchase',
  'renewal',
  'trial_converted',
  'product_change',
]);

/** Returns the payment whose user, or what stands for one, can be given to a creator. Null for other events. */
export function paymentToAttribute({
  kind,
  cause,
  customerUserId,
  attributableKey,
  occurredAt,
}: {
  readonly kind: string | undefined;
  readonly cause: string;
  readonly customerUserId: string | null | undefined;
  readonly attributableKey?: Schemas['AttributableKey'] | undefined;
  readonly occurredAt: number | undefined;
}): UnattributedPayment | null {
  if (kind === undefined || !PAID_KINDS.has(kind) || !CAUSES_TO_ATTRIBUTE.has(cause)) return null;
  const id = customerUserId ?? attributableKey?.customerUserId;
  if (id === undefined || occurredAt === undefined) return null;
  const payer = customerUserId == null ? (attributableKey?.standsFor ?? 'user') : 'user';
  return { customerUserId: id, payer, occurredAt };
}

/** What the payments of a user since an instant would earn. */
export interface Preview {
  readonly payments: number;
  readonly earnedCents: number;
  /** To whom the user belongs: only later payments can be given away. Without a name, the service does not say to whom. */
  readonly owner: { readonly affiliateName: string | null } | null;
}

/** Computes what the payments of a user since `from` would earn for a creator. */
export const usePreview = (
  appId: string,
  {
    customerUserId,
    affiliateId,
    from,
  }: { readonly customerUserId: string; readonly affiliateId: string | undefined; readonly from: number },
) =>
  useQuery({
    queryKey: ['manual-preview', appId, customerUserId, affiliateId, from],
    queryFn: async (): Promise<Preview> => {
      try {
        const { payments, earnedCents, current } = await read(
          api.POST('/apps/{appId}/manual-attributions/preview', {
            params: { path: { appId } },
            body: { customerUserId, affiliateId: affiliateId ?? null, from },
          }),
        );
        return { payments, earnedCents, owner: current };
      } catch (error) {
        if (error instanceof Problem && error.code === 'user_attributed')
          return { payments: 0, earnedCents: 0, owner: { affiliateName: null } };
        throw error;
      }
    },
    enabled: affiliateId !== undefined,
    // What is shown is what the founder agrees to, so it is never an earlier answer.
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });

export interface Attribution {
  readonly customerUserId: string;
  /** Null: nobody. */
  readonly affiliateId: string | null;
  readonly reason: string;
  /** From when on payments earn, and what those until now earn. Absent: from now on. */
  readonly since?: { readonly from: number; readonly expectedCents: number };
}

/** Gives a user to a creator. */
export function useAttribute(
  appId: string,
  { customerUserId, affiliateId, reason, since }: Attribution,
): {
  readonly change: ReturnType<typeof useChange<void, ManualAttribution>>;
  /** Handles an error of the change, before what else does. */
  readonly onError: (error: Error) => void;
} {
  const body = { customerUserId, affiliateId, reason: reason.trim(), ...given({ ...since }) };
  const { key, onError } = useRetryKey(body);
  const change = useChange<void, ManualAttribution>(
    async () =>
      await read(
        api.POST('/apps/{appId}/manual-attributions', {
          params: { path: { appId }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
    ...staleAfterAttribution(appId),
  );
  return { change, onError };
}
