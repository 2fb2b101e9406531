import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { UI_VIEWS, viewAddress } from '../../temporal/ui-views.ts';
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

const UI = 'Views of the Temporal UI';

// @promise ui-views
test('the runbook has a link for each view of the Temporal UI, which opens it with its filter and saves it', () => {
  const rows = [...sections.get(UI)!.matchAll(/^\| \[([^\]]+)\]\(<([^>]+)>\) \| `([^`]+)` \|$/gm)];
  expect(rows.map(([, name, address, query]) => ({ name, address, query }))).toEqual(
    UI_VIEWS.map((view) => ({ ...view, address: viewAddress('http://127.0.0.1:8233', 'default', view) })),
  );
  const [, , address = ''] = rows[0] ?? [];
  const { searchParams } = new URL(address);
  expect([searchParams.get('query'), searchParams.get('savedQuery')]).toEqual([
    'DeliveryState STARTS_WITH "stuck:"',
    'Stuck work',
  ]);
});

test('every alert has a section in the runbook with what it means, where to look and what to do, and no section is left over', () => {
  const ofAlerts = new Map([...sections].filter(([title]) => title !== UI));
  expect([...ofAlerts.keys()].toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
  for (const section of ofAlerts.values())
    for (const part of ['**Means:**', '**Look:**', '**Do:**']) expect(section).toContain(part);
});

test('every alert says whether it wakes somebody up', () => {
  expect(new Set(alerts.map(({ labels }) => labels.severity))).toEqual(new Set(['page', 'ticket']));
});
