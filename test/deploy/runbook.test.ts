import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { textOf } from '../support/text-of.ts';

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly labels: { readonly severity: string } }[];
  }[];
}

const alerts = (parse(textOf('deploy/prometheus/alerts.yaml')) as Rules).groups.flatMap(({ rules }) => rules);
/** The sections of the page by their title. */
const sections = new Map(
  textOf('docs/runbook.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
);

test('every alert has a section in the runbook with what it means, where to look and what to do, and no section is left over', () => {
  expect([...sections.keys()].toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
  for (const section of sections.values())
    for (const part of ['**Means:**', '**Look:**', '**Do:**']) expect(section).toContain(part);
});

test('every alert says whether it wakes somebody up', () => {
  expect(new Set(alerts.map(({ labels }) => labels.severity))).toEqual(new Set(['page', 'ticket']));
});
