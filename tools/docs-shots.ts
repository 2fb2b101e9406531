import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { readConfig } from '../src/config/config.ts';
import { projectRoot } from '../src/config/project-root.ts';
import { runServer } from '../src/server.ts';
import { STUCK_WORK, UI_VIEWS, viewAddress } from '../temporal/ui-views.ts';
import { eventually } from '../test/support/eventually.ts';
import { setUpFounder } from '../test/support/founder.ts';
import { runOn } from '../test/support/postgres-admin.ts';
import { openBrowser } from './open-browser.ts';
import { bodyOf, stripeInvoicePaid } from './provider-payloads.ts';

/*
 * `npm run docs:shots`: takes the screenshots of the Temporal UI in docs/images, from a real run: the service with its
 * built-in servers, and a delivery that is stuck because the role of the service lacks a right on a table. Needs Chromium.
 */

const images = path.join(projectRoot, 'docs/images');
const WIDTH = 1_280;
const FAILURE = path.join(tmpdir(), 'docs-shots-failure.png');
/** The columns of the list: those of the search attributes are chosen by hand with the cogwheel of the list. */
const COLUMNS = JSON.stringify({
  default: ['Status', 'Workflow ID', 'DeliveryState', 'Provider', 'AppId', 'Start'].map((label, index) => ({
    label,
    pinned: index < 2,
  })),
});
/** Where the UI stores its saved views. */
const SAVED_VIEWS = "localStorage.getItem('saved-workflow-queries') ?? ''";
const say = (line: string) => void process.stderr.write(`${line}\n`);

async function takeShots(dataDir: string): Promise<void> {
  const config = readConfig({ DATA_DIR: dataDir, PORT: '0', RATES_URL: 'off', LOG_LEVEL: 'fatal' });
  const server = await runServer(config);
  const browser = await openBrowser();
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 860 } });
  try {
    const { service, backends } = server;
    const connection = await Connection.connect({
      address: backends.temporal.connection.address ?? '',
    });
    const client = new Client({ connection });
    const uiUrl = backends.temporalUiUrl ?? '';
    const founder = await setUpFounder({ sql: service.sql, url: service.url ?? '' });
    for (let purchase = 0; purchase < 3; purchase += 1) await founder.purchase(await founder.customer(), 10);
    const userId = await founder.customer();
    const owner = backends.migrationsDatabaseUrl;

    // A mistake that operators make: a script that creates the roles again, without the rights of the service.
    await runOn(owner, 'revoke insert on commissions from tributary_service');
    const { body } = await founder.stripe(bodyOf(stripeInvoicePaid({ userId, amount: 2_000 })));
    const { id } = await service.sql.one<{ id: string }>`
      select id from deliveries where event_id = ${body.eventId ?? ''}`;
    const workflowId = `delivery:${id}`;
    const handle = client.workflow.getHandle(workflowId);
    await eventually('the step has failed three times', async () => {
      const [pending] = (await handle.describe()).raw.pendingActivities ?? [];
      return (pending?.attempt ?? 0) >= 4;
    });
    const { runId } = await handle.describe();
    const details = `${uiUrl}/namespaces/default/workflows/${encodeURIComponent(workflowId)}/${runId}`;

    const shoot = async (name: string, height: number) => {
      // The UI moves some of its parts into place.
      await page.waitForTimeout(1_500);
      await page.screenshot({
        path: path.join(images, `${name}.png`),
        clip: { x: 0, y: 0, width: WIDTH, height },
      });
      say(`docs/images/${name}.png`);
    };
    for (const view of UI_VIEWS) {
      await page.goto(viewAddress(uiUrl, 'default', view));
      const isSaved = async () => (await page.evaluate<string>(SAVED_VIEWS)).includes(view.name);
      await eventually(`the UI has saved the view ${view.name}`, isSaved, 10_000);
    }
    await page.evaluate(`localStorage.setItem('namespace-workflow-table-columns', '${COLUMNS}')`);
    await page.goto(viewAddress(uiUrl, 'default', STUCK_WORK).replace(/&savedQuery=.*/, ''));
    await page.getByText('stuck:writeCommission').first().waitFor();
    await shoot('temporal-stuck-list', 770);

    /** Opens the tab with the current details, which the UI renders in a frame, and waits for a text in them. */
    const openDetails = async (text: string) => {
      await page.goto(`${details}/history`);
      await page.getByText('User Metadata').first().click();
      await eventually(`the current details say "${text}"`, async () => {
        // A frame may be replaced meanwhile.
        const texts = page
          .frames()
          .map((frame) => frame.evaluate<string>('document.body.innerText').catch(() => ''));
        return (await Promise.all(texts)).some((shown) => shown.includes(text));
      });
    };
    await openDetails('book the commission (step writeCommission): permission denied');
    await shoot('temporal-stuck-details', 520);
    await page.getByText('Pending Activities').first().click();
    await page.getByText('permission denied for table commissions').first().waitFor();
    // Without the stack trace, which names the folders of this machine.
    await shoot('temporal-stuck-activity', 597);

    await runOn(owner, 'grant insert on commissions to tributary_service');
    await handle.result();
    await openDetails('A later attempt succeeded.');
    await shoot('temporal-healed-details', 520);
    await connection.close();
  } catch (error) {
    await page.screenshot({ path: FAILURE });
    say(`${FAILURE} shows the page at the failure`);
    throw error;
  } finally {
    await browser.close();
    await server.stop();
  }
}

await mkdir(images, { recursive: true });
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-shots-'));
try {
  await takeShots(dataDir);
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
process.exit(0);
