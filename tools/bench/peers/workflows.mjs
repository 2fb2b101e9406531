import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

const steps = proxyActivities({ startToCloseTimeout: '10s' });
const { nothing } = proxyLocalActivities({ startToCloseTimeout: '10s' });

/** Six regular activities, one per step. */
export async function sixActivities(input) {
  await steps.verify(input);
  await steps.store(input);
  const event = await steps.normalize(input);
  await steps.dedupe(event);
  return await steps.commission(event, await steps.attribute(event));
}

/** One local activity that does nothing. */
export async function bare() {
  return await nothing();
}

/** A hold timer that matures nothing. */
export async function hold() {
  return await nothing();
}
