import { Stack, Text } from '@mantine/core';
import { Link } from 'react-router';
import type { Setup } from '../api/client.ts';
import { NAMESPACES } from '../codes/words.ts';
import { formatInstant } from '../format.ts';
import { Tag } from '../parts/badges.tsx';

export type CodesState = NonNullable<Setup['purchaseCodes']>;
type Arrival = CodesState['unregistered'][number]['lastArrival'];

/** Returns the codes of all namespaces. */
const codesOf = ({ namespaces }: CodesState) =>
  namespaces.flatMap(({ namespace, codes }) => codes.map((code) => ({ ...code, namespace })));

/** Whether a purchase came with a code of each namespace of which the app has codes. */
export const allArrive = ({ namespaces }: CodesState): boolean => namespaces.every(({ fix }) => fix === null);

/** Whether no purchase has come with any code of the app. */
export const noneArrived = (state: CodesState): boolean =>
  codesOf(state).every(({ lastArrival }) => lastArrival === null);

const when = ({ at, environment }: Arrival): string =>
  `${formatInstant(at)}${environment === 'sandbox' ? ', in a sandbox' : ''}`;

function Arrivals({ appId, state }: { readonly appId: string; readonly state: CodesState }) {
  return (
    <table className="rows">
      <thead>
        <tr>
          <th scope="col">Code</th>
          <th scope="col">Creator</th>
          <th scope="col">Latest purchase with it</th>
        </tr>
      </thead>
      <tbody>
        {codesOf(state).map(
          ({ id, value, externalId, namespace, affiliateId, affiliateName, lastArrival }) => (
            <tr key={id}>
              <td>
                <Text size="sm" fw={600}>
                  {value}
                </Text>
                <Text size="xs" className="quiet">
                  {NAMESPACES[namespace].name}
                  {externalId !== null && (
                    <>
                      , <span className="code-text">{externalId}</span>
                    </>
                  )}
                </Text>
              </td>
              <td>
                <Link to={`/apps/${appId}/creators/${affiliateId}`}>{affiliateName}</Link>
              </td>
              <td>{lastArrival === null ? <Tag tone="wait">None yet</Tag> : when(lastArrival)}</td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

/** Says which codes purchases have come with, what to do for the others, and which codes nobody has. */
export function CodesStep({ appId, state }: { readonly appId: string; readonly state: CodesState }) {
  const missing = state.namespaces.filter(({ fix }) => fix !== null);
  return (
    <Stack gap="md" aria-live="polite">
      {noneArrived(state) && (
        <Text size="sm" fw={600}>
          No code arrived yet.
        </Text>
      )}
      <Arrivals appId={appId} state={state} />
      {missing.map(({ namespace, fix }) => (
        <Text size="sm" key={namespace}>
          <b>{NAMESPACES[namespace].name}:</b> no purchase has come with such a code yet. {fix} A purchase in
          a sandbox shows it, too.
        </Text>
      ))}
      {state.unregistered.length > 0 && (
        <div>
          <Text size="sm" fw={600}>
            Codes of no creator
          </Text>
          <ul style={{ margin: '4px 0', paddingLeft: 20, fontSize: 14 }}>
            {state.unregistered.map(({ namespace, value, lastArrival }) => (
              <li key={`${namespace} ${value}`}>
                {value} ({NAMESPACES[namespace].name}) came with a purchase on {when(lastArrival)}.
              </li>
            ))}
          </ul>
          <Text size="sm">
            If one is that of a creator, add it on the page of the creator, under{' '}
            <Link to={`/apps/${appId}/creators`}>Creators</Link>. It counts for purchases from then on.
          </Text>
        </div>
      )}
    </Stack>
  );
}
