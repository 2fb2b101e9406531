import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createMemberLink } from '../../src/db/member-links.ts';
import { addMember } from '../../src/db/members.ts';
import { newId } from '../../src/db/new-id.ts';
import type { AccountId, KeyId } from '../../src/domain/ids.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startMailServer } from '../../test/support/mail-server.ts';
import { button, checkPage, row, title } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';

/** Returns a port that is free now: passkeys are for the address that the service is said to have. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

const server = await startMailServer();
afterAll(async () => {
  await server.close();
});

const port = await freePort();
const url = `http://localhost:${port}`;
const mail = { smtpUrl: server.url, from: 'Lantern <team@lantern.example>', publicUrl: url };

/** Gives the browser of a page an authenticator that knows its user. */
async function addAuthenticator(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

describeInBrowserWith({
  settings: { port, publicUrl: url, mail, relay: { overdueMs: 30_000, pauseMs: 100 } },
})('passkeys in a browser', ({ service, newPage, post, newFounder }) => {
  const invite = async (accountId: AccountId, email: string) => {
    const member = { id: newId('member'), email, name: 'Fin', role: 'finance', appIds: null } as const;
    await addMember(service.sql, accountId, member, Date.now());
    return member.id;
  };
  const signOut = async (page: Page) => {
    await button(page, 'Lantern Ltd').click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  };

  test('a member adds a passkey, signs in with it, confirms a payment with it, and revokes it', async () => {
    const founder = await newFounder();
    const creator = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada',
    });
    await post(`/apps/${founder.appId}/affiliates/${creator.id}/entries`, founder.key, {
      amountCents: 1_200,
      category: 'bonus',
      reason: 'For the launch',
      externalId: 'launch',
    });
    await invite(founder.accountId, 'fin@example.com');

    const { page, problems } = await newPage({}, url);
    await addAuthenticator(page);
    await page.goto(`${url}/console/`);
    await page.getByLabel('E-mail address').fill('fin@example.com');
    await checkPage(page, 'sign-in-passkey');
    await button(page, 'Mail me a link').click();
    await eventually('the mail arrives', async () => server.received.length > 0);
    const [, token = ''] = /#token=([\w-]{43})/.exec(server.received[0]?.text ?? '') ?? [];
    await page.goto(`${url}/console/#token=${token}`);
    await page.getByText('It works once.').waitFor();
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await button(page, 'Lantern Ltd').click();
    await page.getByRole('menuitem', { name: 'Passkeys and sessions' }).click();
    await title(page, 'Access');
    await page.getByText('No passkeys yet').waitFor();
    await button(page, 'Add a passkey').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Laptop');
    await checkPage(page, 'passkey-add');
    await dialog.getByRole('button', { name: 'Add the passkey' }).click();
    await row(page, /Laptop.*not yet/).waitFor();
    await checkPage(page, 'passkeys');

    // An authenticator that has a passkey of the member makes no second one.
    await button(page, 'Add a passkey').click();
    await dialog.getByRole('button', { name: 'Add the passkey' }).click();
    await dialog.getByText('already has a passkey of yours').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();

    await signOut(page);
    await button(page, 'Sign in with a passkey').click();
    await button(page, 'Lantern Ltd').waitFor();
    const [session] = await service.sql`
        select s.raised_key_id = s.key_id as is_raised from sessions s
         where s.account_id = ${founder.accountId} and s.ended_at is null`;
    expect(session).toEqual({ isRaised: true });

    // A quarter of an hour later.
    await service.sql`update sessions set raised_key_id = null, raised_until = null`;
    await page.goto(`${url}/console/apps/${founder.appId}/payouts`);
    await button(page, /^Pay /).first().click();
    await dialog.getByText('Paying needs your passkey.').waitFor();
    await checkPage(page, 'passkey-pay');
    await dialog.getByRole('button', { name: 'Use your passkey' }).click();
    await dialog.getByRole('button', { name: /^Pay/ }).click();
    await eventually('the payout is booked', async () => {
      const rows = await service.sql`select 1 from payouts where app_id = ${founder.appId}`;
      return rows.length === 1;
    });
    const [booked] = await service.sql`
        select r.actor_label from audit_rows r where r.object_kind = 'payout' and r.app_id = ${founder.appId}`;
    expect(booked).toEqual({ actorLabel: 'Fin' });

    await page.goto(`${url}/console/access`);
    await button(page, 'Revoke Laptop').click();
    await checkPage(page, 'passkey-revoke');
    await dialog.getByRole('button', { name: 'Revoke the passkey' }).click();
    await page.getByText('No passkeys yet').waitFor();
    await signOut(page);
    await button(page, 'Sign in with a passkey').click();
    await page.getByText('It is not known here or was revoked').waitFor();
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('with a copied link, adding a passkey asks for a mailed link first, as paying does', async () => {
    const founder = await newFounder();
    const memberId = await invite(founder.accountId, 'copied@example.com');
    const { id: makerKeyId } = await service.sql.one<{ id: KeyId }>`
      select id from account_keys where account_id = ${founder.accountId} and permissions @> permissions_of_role('owner') limit 1`;
    const link = await createMemberLink(service.sql, founder.accountId, memberId, {
      makerKeyId,
      now: Date.now(),
    });
    const { page, problems } = await newPage({}, url);
    await addAuthenticator(page);
    await page.goto(`${url}/console/#token=${link?.token ?? ''}`);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await button(page, 'Lantern Ltd').waitFor();
    await page.goto(`${url}/console/access`);
    await button(page, 'Add a passkey').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Add the passkey' }).click();
    await dialog.getByText('Paying needs a new link, mailed to copied@example.com').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.getByRole('button', { name: 'Add the passkey' }).waitFor();
    expect(problems(/status of 403/)).toEqual([]);
  });
});
