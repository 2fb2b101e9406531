import { Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas, Setup } from '../api/client.ts';
import { KEYS, LIVE_MS } from '../api/queries.ts';
import { formatCountOf } from '../format.ts';
import { ErrorBox, Waiting } from '../parts.tsx';

/** Asks whether the app and billing report the same user ids, and again when the set-up has another user or sale. */
export function useIdentity(appId: string, { identified, firstSaleAt }: Setup, isEnabled: boolean) {
  return useQuery({
    queryKey: [...KEYS.identity(appId), identified, firstSaleAt],
    placeholderData: keepPreviousData,
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/diagnostics/identity', { params: { path: { appId } } })),
    enabled: isEnabled,
    refetchInterval: ({ state }) => (state.data?.verdict === 'ok' ? false : LIVE_MS * 5),
  });
}

function Samples({ title, ids }: { readonly title: string; readonly ids: readonly string[] }) {
  if (ids.length === 0) return null;
  return (
    <div>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <Text size="sm" className="code-text">
        {ids.slice(0, 5).join(', ')}
      </Text>
    </div>
  );
}

/** Whether the app has reported users, and only the first purchase can show whether billing names the same ones. */
export const waitsForPurchase = ({
  verdict,
  attributionOnlySamples,
}: Pick<Schemas['IdentityDiagnosis'], 'verdict' | 'attributionOnlySamples'>): boolean =>
  verdict === 'no_data' && attributionOnlySamples.length > 0;

const VERDICTS: Readonly<Record<Schemas['IdentityDiagnosis']['verdict'], string>> = {
  ok: 'The app and billing report the same user ids. Purchases can be attributed.',
  no_overlap:
    'The app and billing report different user ids, so no purchase can be attributed. Pass the id that billing reports to identify.',
  no_data:
    'Nothing to compare yet: this is filled once the app has identified a user, and billing has reported one.',
};

export function IdentityStep({ identity }: { readonly identity: ReturnType<typeof useIdentity> }) {
  if (identity.error !== null)
    return <ErrorBox error={identity.error} retry={() => void identity.refetch()} />;
  if (identity.data === undefined) return <Waiting what="user ids" />;
  const { verdict, overlapCount, billingOnlySamples, attributionOnlySamples } = identity.data;
  return (
    <Stack gap="sm">
      <Text size="sm">
        {waitsForPurchase(identity.data)
          ? 'Waiting for billing to report a user. The first purchase in the next step does so.'
          : VERDICTS[verdict]}
      </Text>
      {verdict === 'ok' && (
        <Text size="sm" className="quiet">
          {formatCountOf(overlapCount, 'user id')} {overlapCount === 1 ? 'is' : 'are'} on both sides.
        </Text>
      )}
      <Samples title="Only billing reports" ids={billingOnlySamples} />
      <Samples title="Only the app reports" ids={attributionOnlySamples} />
    </Stack>
  );
}
