import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCount } from '../format.ts';

/** The service names at most this many rows of a rule. */
export const MOST_ROWS = 20;

/** A table of rules of the ledger. Its rows are `RuleRow`. The caption is for screen readers only. */
export function RuleTable({
  caption,
  children,
}: {
  readonly caption?: string;
  readonly children: ReactNode;
}) {
  return (
    <div className="surface">
      <table className="rows">
        {caption !== undefined && <caption className="spoken">{caption}</caption>}
        <thead>
          <tr>
            <th scope="col">Result</th>
            <th scope="col">Rule</th>
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A rule with its result, and what breaks it. */
export function RuleRow({
  rule,
  result,
  children,
}: {
  readonly rule: { readonly name: string; readonly description: string };
  readonly result: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <tr>
      <td>{result}</td>
      <td>
        <Text size="sm">{rule.description}</Text>
        <Text size="xs" className="quiet code-text">
          {rule.name}
        </Text>
        {children}
      </td>
    </tr>
  );
}

/** Says below the rows that break a rule that there are more. */
export function RowsCut({ violations }: { readonly violations: number }) {
  return violations <= MOST_ROWS ? null : (
    <Text size="xs" mt={6}>
      Only the first {MOST_ROWS} of {formatCount(violations)} are listed.
    </Text>
  );
}
