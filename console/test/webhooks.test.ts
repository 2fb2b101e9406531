import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { eventually } from '../../test/support/eventually.ts';
import { setUpApp, setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { startReceiver } from '../../test/support/webhook-receiver.ts';
import type { WebhookReceiver } from '../../test/support/webhook-receiver.ts';
import { button, checkPage, chooseFilter, PHONE, row } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';

const DAY_MS = 86_400_000;

/** Notes whether the list of what is to do was shown when the balances below it were: later, it would move them. */
const SHOWN_WITH_TO_DO = `
  new MutationObserver(() => {
    if (document.querySelector('#balances') !== null)
      globalThis.shownWithToDo ??= document.querySelector('#to-do') !== null;
  }).observe(document, { childList: true, subtree: true });
`;

const settings = { webhookTargets: 'any', webhookRetryMs: [DAY_MS] } as const;

describeInBrowserWith({ settings })('outgoing webhooks in a browser', ({ service, signedIn }) => {
  let founder: Founder;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
    receiver = await startReceiver();
  });
  afterAll(async () => {
    await receiver.close();
  });
  afterEach(async () => {
    receiver.received.length = 0;
    receiver.status = 204;
  });

  test('a founder creates an endpoint, whose test event and first commission arrive signed', async () => {
    const own = await setUpApp(founder, { name: 'Webhooks' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/webhooks`);
    await page.getByText('No endpoints yet').waitFor();
    await button(page, 'New endpoint').click();
    await page.getByLabel('URL').fill('ftp://example.com');
    await button(page, 'Create the endpoint').click();
    await page.getByText('Must begin with https://.').waitFor();
    await page.getByLabel('URL').fill(receiver.url);
    await page.getByLabel('What it is for').fill('Notifies the CRM');
    // The sale is older than the hold period, so it is due at once.
    await page.getByLabel('commission.matured').uncheck();
    await button(page, 'Create the endpoint').click();
    await page.getByText('Copy the signing secret now').waitFor();
    receiver.secret = (await page.getByText(/^whsec_/).textContent()) ?? '';
    await button(page, 'Done').click();
    await row(page, /Notifies the CRM.*Active/).waitFor();
    expect(await page.getByText(/^whsec_/).count()).toBe(0);

    await button(page, /^Send a test event/).click();
    await row(page, /webhook\.test.*Delivered/).waitFor();
    await own.purchase(await own.customer(), 20);
    await button(page, '1 new').click();
    await row(page, /commission\.created.*Delivered/).waitFor();
    expect(receiver.received.map(({ type, isSigned }) => [type, isSigned])).toEqual([
      ['webhook.test', true],
      ['commission.created', true],
    ]);
    await button(page, /1 attempt at commission\.created/).click();
    await page.getByText('"amount": "4.00"').waitFor();
    await row(page, /1.*204/).waitFor();
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('an edit of an endpoint sends what was changed: an address that somebody else has set stays', async () => {
    const own = await setUpApp(founder, { name: 'Edited' });
    const path = `/apps/${own.app.id}/webhook-endpoints`;
    const fields = { url: receiver.url, eventTypes: ['commission.created'], description: 'First' };
    const { id } = await own.ok<{ id: string }>('POST', path, fields);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/webhooks`);
    await button(page, `Change ${receiver.url}`).click();
    await page.getByLabel('What it is for').fill('Second');
    const url = `${receiver.url}/moved`;
    await own.ok('PATCH', `${path}/${id}`, { url });
    await button(page, 'Save').click();
    await page.getByText('The endpoint is changed.').waitFor();
    expect(await own.ok('GET', `${path}/${id}`)).toMatchObject({ url, description: 'Second' });
    expect(problems()).toEqual([]);
  });

  test('a message that fails shows its attempts, and "send again" delivers it', async () => {
    const own = await setUpApp(founder, { name: 'Failing' });
    const body = { url: receiver.url, eventTypes: ['payout.created'] };
    const path = `/apps/${own.app.id}/webhook-endpoints`;
    const endpoint = await own.ok<{ id: string; secret: string }>('POST', path, body);
    receiver.secret = endpoint.secret;
    receiver.status = 503;
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/webhooks`);
    await button(page, /^Send a test event/).click();
    await row(page, /webhook\.test.*Waiting.*The endpoint responded with 503\./).waitFor();
    await row(page, /Failing.*No attempt succeeded since/).waitFor();
    await button(page, /attempt at webhook\.test/).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('status 503').waitFor();
    await dialog.getByText(/^Next attempt/).waitFor();
    receiver.status = 200;
    await button(page, 'Send again').click();
    await dialog.getByText('Delivered').waitFor();
    await dialog.getByRole('row', { name: /2.*200/ }).waitFor();
    // The message is in the address: a reload shows it again.
    await page.reload();
    await dialog.getByRole('row', { name: /2.*200/ }).waitFor();
    await button(page, 'Close').click();
    await dialog.waitFor({ state: 'hidden' });
    expect(new URL(page.url()).searchParams.get('message')).toBeNull();
    await row(page, new RegExp(`${receiver.url}.*Active`)).waitFor();

    // The secret is replaced without a gap, and the endpoint is deactivated and activated.
    await button(page, /^Rotate the secret of/).click();
    await button(page, 'Create the new secret').click();
    await page.getByText('Copy the new signing secret now').waitFor();
    await button(page, 'Done').click();
    await row(page, /Two secrets sign until/).waitFor();
    await button(page, /^Deactivate/).click();
    await page.getByText('Its messages that wait fail').waitFor();
    await button(page, 'Cancel').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await button(page, /^Deactivate/).click();
    await button(page, 'Deactivate the endpoint').click();
    await row(page, /Not active.*Somebody deactivated it/).waitFor();
    expect(await button(page, /^Send a test event/).count()).toBe(0);
    await dialog.waitFor({ state: 'hidden' });
    await button(page, /attempts at webhook\.test/).click();
    await dialog.getByText('Its endpoint is not active').waitFor();
    expect(await button(page, 'Send again').isDisabled()).toBe(true);
    await button(page, 'Close').click();
    await dialog.waitFor({ state: 'hidden' });
    await button(page, /^Activate/).click();
    await row(page, /Active/).waitFor();

    // It is deleted while it is active. Its messages stay, and are not sent again.
    await button(page, /^Delete/).click();
    await page.getByText('is deleted with its secret').waitFor();
    await button(page, 'Delete the endpoint').click();
    await page.getByText('No endpoints yet').waitFor();
    await row(page, /webhook\.test.*Delivered/).waitFor();
    await button(page, /attempts at webhook\.test/).click();
    await dialog.getByText('Its endpoint was deleted').waitFor();
    expect(await button(page, 'Send again').isDisabled()).toBe(true);
    await button(page, 'Close').click();
    await dialog.waitFor({ state: 'hidden' });

    await chooseFilter(page, 'State', 'Failed');
    await page.getByText('No messages match these filters').waitFor();
    await page.reload();
    await page.getByText('No messages match these filters').waitFor();
    expect(problems()).toEqual([]);
  });

  test('the overview names an endpoint that fails or that the service deactivated, and does not move for it', async () => {
    const own = await setUpApp(founder, { name: 'To do' });
    const path = `/apps/${own.app.id}/webhook-endpoints`;
    interface State {
      readonly id: string;
      readonly url: string;
      readonly active: boolean;
      readonly failingSince: number | null;
    }
    const create = async (url: string) =>
      await own.ok<State>('POST', path, { url, eventTypes: ['payout.created'] });
    /** Sends a test event that gets this status, and waits for what it does to the endpoint. */
    const fail = async ({ id }: State, status: number, isDone: (state: State) => boolean) => {
      receiver.status = status;
      await own.ok('POST', `${path}/${id}/test`);
      await eventually(`the endpoint has failed with ${status}`, async () =>
        isDone(await own.ok<State>('GET', `${path}/${id}`)),
      );
    };
    const { page, problems } = await signedIn(founder.key, { viewport: { width: 360, height: 900 } });
    const open = async () => await page.goto(`${service.url}/console/apps/${own.app.id}/overview`);
    const first = await create(`${receiver.url}/${'crm'.repeat(50)}`);
    await fail(first, 503, ({ failingSince }) => failingSince !== null);

    // The answer about endpoints comes last.
    await page.addInitScript(SHOWN_WITH_TO_DO);
    const others = [/\/overview$/, /unattributed\/summary$/, /webhooks\/summary$/];
    await page.route('**/webhook-endpoints', async (route) => {
      await answered;
      await page.waitForTimeout(300);
      await route.continue();
    });
    const answered = Promise.all(
      others.map(
        async (end) =>
          await page.waitForResponse(
            (response) => response.request().resourceType() === 'fetch' && end.test(response.url()),
          ),
      ),
    );
    await open();
    await page.getByText('An endpoint of your webhooks fails').waitFor();
    await page.getByText(`${first.url}: No attempt succeeded since`).waitFor();
    expect(await page.evaluate('shownWithToDo')).toBe(true);
    await page.unroute('**/webhook-endpoints');
    await checkPage(page, 'overview-endpoint');

    await fail(first, 410, ({ active }) => !active);
    const second = await create(receiver.url);
    await fail(second, 503, ({ failingSince }) => failingSince !== null);
    await open();
    await page.getByText('2 endpoints of your webhooks need attention').waitFor();
    await page
      .getByText(/It responded with 410 Gone, so the service deactivated it\. .* And 1 other\./)
      .waitFor();
    // What a person deactivated is nothing to do.
    await own.ok('PATCH', `${path}/${second.id}`, { active: false });
    await open();
    await page.getByText('An endpoint of your webhooks was deactivated').waitFor();
    await page.getByRole('link', { name: 'See the endpoints' }).click();
    await row(page, /crm.*Not active.*410 Gone/).waitFor();
    await own.ok('DELETE', `${path}/${first.id}`);
    await open();
    await page.getByText('Owed and booked').waitFor();
    expect(await page.getByRole('heading', { name: 'To do' }).count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a create and a rotation whose answers are lost are sent again and happen once', async () => {
    const own = await setUpApp(founder, { name: 'Lost answers' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/webhooks`);
    /** Loses the answer of the next call that matches. */
    const loseNext = async (path: RegExp) =>
      await page.route(
        path,
        async (route) => {
          if (route.request().method() !== 'POST') return await route.fallback();
          await route.fetch();
          return await route.abort();
        },
        { times: 1 },
      );
    await page.getByText('No endpoints yet').waitFor();
    await button(page, 'New endpoint').click();
    await page.getByLabel('URL').fill(receiver.url);
    await loseNext(/\/webhook-endpoints$/);
    await button(page, 'Create the endpoint').click();
    await page.getByText('That did not work').waitFor();
    await button(page, 'Create the endpoint').click();
    await page.getByText('Copy the signing secret now').waitFor();
    receiver.secret = (await page.getByText(/^whsec_/).textContent()) ?? '';
    await button(page, 'Done').click();
    const { items } = await own.ok<{ items: object[] }>('GET', `/apps/${own.app.id}/webhook-endpoints`);
    expect(items).toHaveLength(1);

    await button(page, /^Rotate the secret of/).click();
    await loseNext(/\/rotate-secret$/);
    await button(page, 'Create the new secret').click();
    await page.getByText('That did not work').waitFor();
    await button(page, 'Create the new secret').click();
    await page.getByText('Copy the new signing secret now').waitFor();
    const secret = (await page.getByText(/^whsec_/).textContent()) ?? '';
    await button(page, 'Done').click();
    // The secret that was in use still signs beside the new one.
    for (const signing of [receiver.secret, secret]) {
      receiver.secret = signing;
      receiver.received.length = 0;
      await button(page, /^Send a test event/).click();
      await eventually('the test event arrives', async () => receiver.received.length > 0);
      expect(receiver.received.map(({ isSigned, signatures }) => [isSigned, signatures])).toEqual([
        [true, 2],
      ]);
    }
    expect(problems(/ERR_FAILED/)).toEqual([]);
  });

  test('a key that only reads sees messages, and says which permission changes need', async () => {
    const own = await setUpApp(founder, { name: 'Reader' });
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read']);
    const { page, problems } = await signedIn(key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/webhooks`);
    await page.getByText('No messages yet').waitFor();
    await page.getByText('needs the permission “setup”').waitFor();
    expect(await button(page, 'New endpoint').isDisabled()).toBe(true);
    // The overview does not ask for the endpoints either, which would be refused.
    await page.goto(`${service.url}/console/apps/${own.app.id}/overview`);
    await page.getByText('Owed and booked').waitFor();
    expect(problems()).toEqual([]);
  });

  test('the page has no violation of WCAG 2.2 AA, no error and no sideways scroll in any window, empty or full', async () => {
    const own = await setUpApp(founder, { name: 'Full' });
    const { page, problems } = await signedIn(founder.key, PHONE);
    const look = async (state: string) => await checkPage(page, `webhooks-${state}`);
    await page.goto(`${service.url}/console/apps/${own.app.id}/webhooks`);
    await page.getByText('No messages yet').waitFor();
    await look('empty');
    const path = `/apps/${own.app.id}/webhook-endpoints`;
    const create = async (eventTypes: readonly string[], url = receiver.url) =>
      await own.ok<{ id: string; secret: string }>('POST', path, { url, eventTypes, description: 'CRM' });
    const gone = await create(['payout.created'], `${receiver.url}/former`);
    const endpoint = await create(['commission.created', 'commission.matured', 'payout.created']);
    await own.ok('PATCH', `${path}/${gone.id}`, { active: false });
    await own.purchase(await own.customer(), 20);
    // While an endpoint fails, its other messages wait: only the test event may fail.
    await eventually('both messages of the sale arrive', async () => receiver.received.length >= 2);
    receiver.status = 500;
    await own.ok('POST', `${path}/${endpoint.id}/test`);
    await page.reload();
    await row(page, /webhook\.test.*responded with 500/).waitFor();
    await row(page, /Not active/).waitFor();
    await look('full');
    await button(page, /attempt at webhook\.test/).click();
    await page.getByText('status 500').waitFor();
    await look('message');
    await page.keyboard.press('Escape');
    await button(page, 'New endpoint').click();
    await page.getByLabel('URL').waitFor();
    await look('form');
    expect(problems()).toEqual([]);
    receiver.status = 204;
  });
});
