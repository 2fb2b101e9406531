import { Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** A few figures beside each other, each with its name and a hint. */
export function Figures({
  figures,
}: {
  readonly figures: readonly {
    readonly name: string;
    readonly value: ReactNode;
    readonly hint?: ReactNode;
  }[];
}) {
  return (
    <dl className="figures">
      {figures.map(({ name, value, hint }) => (
        <div key={name} className="surface">
          <dt>{name}</dt>
          <dd>
            <b>{value}</b>
            {hint !== undefined && hint !== false && (
              <Text size="xs" className="quiet">
                {hint}
              </Text>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
