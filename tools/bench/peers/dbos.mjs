import { DBOS } from '@dbos-inc/dbos-sdk';
import { listen } from './listen.mjs';
import { newDeliveryId, openSteps } from './six-steps.mjs';

/** A DBOS workflow with six steps. Arguments: the database of the steps, that of DBOS, the secret, the users. */
const [databaseUrl, systemDatabaseUrl, secret, users] = process.argv.slice(2);
const steps = await openSteps(databaseUrl, secret, users.split(','));

const deliver = DBOS.registerWorkflow(
  async (input) => {
    await DBOS.runStep(() => steps.verify(input), { name: 'verify' });
    await DBOS.runStep(() => steps.store(input), { name: 'store' });
    const event = await DBOS.runStep(() => steps.normalize(input), { name: 'normalize' });
    await DBOS.runStep(() => steps.dedupe(event), { name: 'dedupe' });
    const attributed = await DBOS.runStep(() => steps.attribute(event), { name: 'attribute' });
    return await DBOS.runStep(() => steps.commission(event, attributed), { name: 'commission' });
  },
  { name: 'deliver' },
);

DBOS.setConfig({
  name: 'bench',
  applicationVersion: '1',
  systemDatabaseUrl,
  systemDatabasePoolSize: 20,
  logLevel: 'error',
});
await DBOS.launch();
listen(async (body, headers) => {
  const deliveryId = newDeliveryId();
  const handle = await DBOS.startWorkflow(deliver, { workflowID: deliveryId })({
    deliveryId,
    body,
    signature: headers['stripe-signature'],
  });
  return { commissionId: await handle.getResult() };
});
