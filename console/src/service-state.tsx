import { useQuery } from '@tanstack/react-query';
import { api, read } from './api/client.ts';

/** How often the state is read again while a page is shown, ms. */
const STATE_MS = 30_000;

/** What the absence of a part means to a founder, by the name of its check. The other parts stop no figure and no payment. */
const MEANINGS: Readonly<Record<string, string>> = {
  temporal:
    'Purchases are stored now and counted later, because Temporal does not respond. Figures are behind, payouts may wait, and nothing is lost.',
  payouts: 'Payouts are stopped. The operator of the service resumes them.',
};

/** Says above every page what the service does later than usual, or not at present. Nothing else. */
export function ServiceState() {
  const state = useQuery({
    queryKey: ['service-state'],
    queryFn: async () => await read(api.GET('/readyz')),
    refetchInterval: STATE_MS,
    retry: false,
  });
  const missing = (state.data?.checks ?? []).flatMap(({ name, ok }) => (ok ? [] : (MEANINGS[name] ?? [])));
  // Always there, so that screen readers announce its changes.
  return (
    <div role="status">
      {missing.map((meaning) => (
        <p key={meaning} className="surface service-state">
          {meaning}
        </p>
      ))}
    </div>
  );
}
