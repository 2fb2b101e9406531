import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startMailServer } from '../support/mail-server.ts';
import type { MailServer } from '../support/mail-server.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

/** Mails of a payout run, and how long the mail server takes for each, ms. */
const BULK = 400;
const DELAY_MS = 400;

let service: TestService;
let founder: Founder;
let server: MailServer;

beforeAll(async () => {
  server = await startMailServer();
  server.delayMs = DELAY_MS;
  service = await startTestService({
    settings: {
      mail: {
        smtpUrl: server.url,
        from: 'tributary@lantern.example',
        publicUrl: 'https://partners.example.com',
      },
      relay: { overdueMs: 30_000, pauseMs: 100 },
    },
  });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
  await server.close();
});

/** Writes mails. Those that are valid for a quarter of an hour are such that somebody waits for, as codes are. */
const write = async (count: number, name: string, minutes: number | null) =>
  await service.sql`
    insert into emails (id, app_id, affiliate_id, kind, subject_id, recipient, expires_at)
    select id, ${founder.app.id}, ${founder.affiliateId}, 'address_changed', id, ${name}::text || n || '@example.com',
           now() + ${minutes}::int * interval '1 minute'
      from unnest(${Array.from({ length: count }, () => newId('email'))}::text[]) with ordinality x (id, n)`;
const arrived = (name: string) =>
  server.received.filter(({ recipients }) => recipients[0]?.startsWith(name) === true).length;

// @promise email-codes-first
test('a code does not wait behind the mails of a payout run to hundreds of creators', async () => {
  await write(BULK, 'bulk', null);
  await eventually('some mails of the run have arrived', async () => arrived('bulk') >= 10, 60_000);
  const startedAt = Date.now();
  await write(3, 'code', 15);
  await eventually('the codes have arrived', async () => arrived('code') === 3, 60_000);
  const took = Date.now() - startedAt;
  const left = BULK - arrived('bulk');
  // What is left takes at least a tenth of a second each: a code in the order of arrival would have waited for all of it.
  expect(left).toBeGreaterThan(BULK / 2);
  expect(took).toBeLessThan((left * DELAY_MS) / 4);
});
