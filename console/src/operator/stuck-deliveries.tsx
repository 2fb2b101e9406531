import { Text } from '@mantine/core';
import { formatAgo, formatCount, formatInstant } from '../format.ts';
import { PROVIDERS } from '../words.ts';
import { useInstallationState, useStuckDeliveries } from './queries.ts';
import { NotCurrent, NotYet, Section } from './section.tsx';

/** The service searches as many deliveries without an outcome for stuck ones. */
const SEARCHED = 2_000;

export function StuckDeliveries() {
  const stuck = useStuckDeliveries();
  const unfinished = useInstallationState().data?.backlog.unfinishedDeliveries ?? 0;
  return (
    <Section title="Stuck deliveries">
      {stuck.data !== undefined && <NotCurrent query={stuck} />}
      {stuck.data === undefined ? (
        <NotYet query={stuck} what="stuck deliveries" />
      ) : stuck.data.deliveries.length === 0 ? (
        <Text size="sm" className="quiet">
          {unfinished < SEARCHED
            ? 'No step of a delivery fails.'
            : `No step fails of the first ${formatCount(SEARCHED)} deliveries without an outcome. Later ones are not searched.`}
        </Text>
      ) : (
        <div className="surface">
          <table className="rows">
            <caption className="spoken">Deliveries of which a step fails</caption>
            <thead>
              <tr>
                <th scope="col">Received</th>
                <th scope="col">Delivery</th>
                <th scope="col">Step</th>
                <th scope="col">Cause</th>
              </tr>
            </thead>
            <tbody>
              {stuck.data.deliveries.map((row) => (
                <tr key={row.id}>
                  <td>
                    <Text size="sm" title={formatInstant(row.receivedAt)}>
                      {formatAgo(row.receivedAt)}
                    </Text>
                  </td>
                  <td>
                    <Text size="sm">{PROVIDERS[row.source]}</Text>
                    <Text size="xs" className="quiet" style={{ overflowWrap: 'anywhere' }}>
                      {row.workflowUrl === null ? (
                        row.id
                      ) : (
                        <a href={row.workflowUrl} target="_blank" rel="noreferrer">
                          {row.id}
                        </a>
                      )}
                    </Text>
                    <Text size="xs" className="quiet" style={{ overflowWrap: 'anywhere' }}>
                      {row.appId}
                    </Text>
                  </td>
                  <td data-name="Step" style={{ whiteSpace: 'nowrap' }}>
                    {row.step === null ? (
                      <span className="quiet">Temporal names none now</span>
                    ) : (
                      <>
                        {row.step}
                        {row.attempt !== null && (
                          <Text size="xs" className="quiet">
                            Attempt {row.attempt}
                          </Text>
                        )}
                      </>
                    )}
                  </td>
                  <td style={{ overflowWrap: 'anywhere' }}>{row.cause}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}
