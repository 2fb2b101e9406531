import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { lateWork } from '../src/operator/late-work.ts';

const NOTHING = {
  oldestUnfinishedSeconds: 0,
  stuckDeliveries: 0,
  oldestOverdueSeconds: 0,
  oldestPayoutRequestSeconds: 0,
  oldestUnhealedSeconds: 0,
  oldestDueWebhookSeconds: 0,
};

/** Returns the limit of an alert about the oldest of something, seconds. */
function limitOf(metric: string): number {
  const alerts = readFileSync(path.join(projectRoot, 'deploy/prometheus/alerts.yaml'), 'utf8');
  const [, limit] = new RegExp(`max\\(${metric}\\) > (\\d+)$`, 'm').exec(alerts) ?? [];
  if (limit === undefined) throw new Error(`no alert about ${metric}`);
  return Number(limit);
}

test.each([
  ['tributary_oldest_unfinished_delivery_seconds', 'oldestUnfinishedSeconds'],
  ['tributary_oldest_open_payout_request_seconds', 'oldestPayoutRequestSeconds'],
  ['tributary_oldest_overdue_commission_seconds', 'oldestOverdueSeconds'],
  ['tributary_oldest_unhealed_binding_seconds', 'oldestUnhealedSeconds'],
  ['tributary_oldest_due_webhook_seconds', 'oldestDueWebhookSeconds'],
])('the page of the operator names what waits beyond the limit of the alert about %s', (metric, field) => {
  const limit = limitOf(metric);
  expect(lateWork({ ...NOTHING, [field]: limit })).toEqual([]);
  expect(lateWork({ ...NOTHING, [field]: limit + 1 })).toHaveLength(1);
});
