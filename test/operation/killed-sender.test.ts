import { expect, test } from '@jest/globals';
import { freePort } from '../../src/embedded/processes.ts';
import { startChildService } from '../support/child-service.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import { startMailServer } from '../support/mail-server.ts';

// @promise email-killed
test('a sender that is killed while the server answers repeats the same mail, and its row is one', async () => {
  const database = await createTestDatabase();
  const server = await startMailServer();
  const apiPort = await freePort();
  const env = {
    PORT: String(apiPort),
    PUBLIC_URL: `http://127.0.0.1:${apiPort}`,
    SMTP_URL: server.url,
    MAIL_FROM: 'Lantern <partners@lantern.example>',
  };
  let child = await startChildService(database.url, env);
  try {
    const other = await setUpFounder({ sql: database.sql, url: child.url });
    const creator = `/apps/${other.app.id}/affiliates/${other.affiliateId}`;
    await other.ok('PATCH', creator, { email: 'ada@example.com' });
    server.delayMs = 60_000;
    const { emailId } = await other.ok<{ emailId: string }>('POST', `${creator}/sign-in-links/send`);
    await eventually('the server has the mail', async () => server.received.length === 1);
    await child.kill();
    server.delayMs = 0;
    // The wait for the second attempt is half a minute.
    await database.sql`update emails set next_attempt_at = now() where id = ${emailId}`;
    child = await startChildService(database.url, env);
    const read = async () =>
      await database.sql<{ status: string; attempts: number }>`select status, attempts from emails`;
    await eventually('the mail is sent', async () => (await read())[0]?.status === 'sent');
    expect(await read()).toEqual([{ status: 'sent', attempts: 2 }]);
    expect(server.received.map(({ messageId }) => messageId)).toEqual([
      `<${emailId}@lantern.example>`,
      `<${emailId}@lantern.example>`,
    ]);
    expect(new Set(server.received.map(({ text }) => text)).size).toBe(1);
  } finally {
    await child.kill();
    await server.close();
    await database.drop();
  }
});
