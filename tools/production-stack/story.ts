import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { bodyOf, revenuecatEvent } from '../provider-payloads.ts';
import { say } from '../run-tool.ts';
import { send } from './http.ts';
import type { Answer } from './http.ts';

/** An app that was set up behind the balancer, with users of a creator. */
export interface Shop {
  readonly base: string;
  readonly appId: string;
  /** A key of the account with all permissions. */
  readonly key: string;
  readonly users: readonly string[];
  readonly exportRoute: string;
  /** Makes a purchase of a user, of a price of $10. Returns a function that sends it, each time the same. */
  readonly purchase: (userId: string) => () => Promise<Answer>;
  /** Requests a payout of what is due. Returns its CSV. */
  readonly payOut: () => Promise<string>;
}

const SLUG = 'spring';
const USERS = 10;

/** Sends a click on the link of a shop. */
export async function click(
  base: string,
  appId: string,
  claimToken: string,
  clickedAt?: number,
): Promise<Answer> {
  const body = {
    customerAppId: appId,
    slug: SLUG,
    claimToken,
    ...(clickedAt !== undefined && { clickedAt }),
  };
  return await send(base, 'POST', '/clicks', { body });
}

/**
 * Tells the story from the click to the payout CSV through the balancer, at `base`. Returns its app; one purchase of it has earned
 * and was paid out. `afterCreation` is called when the app and its SDK key exist.
 */
export async function tellStory(
  base: string,
  key: string,
  afterCreation: () => Promise<void> = async () => {},
): Promise<Shop> {
  const call = async (method: string, route: string, body?: object, bearer = key) => {
    const headers = { authorization: `Bearer ${bearer}` };
    const answer = await send(base, method, route, { headers, ...(body !== undefined && { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${route}: ${answer.status} ${answer.text}`);
    return answer.text;
  };
  const create = async (...args: Parameters<typeof call>) =>
    JSON.parse(await call(...args)) as Record<string, string>;
  const app = await create('POST', '/apps', { name: 'Lantern', commissionRateBps: 2000, holdPeriodDays: 0 });
  const { id: appId = '', sdkKey = '' } = app;
  await afterCreation();
  const { secret = '' } = await create('PUT', `/apps/${appId}/webhooks/revenuecat/secret`, {});
  const { id: affiliateId = '' } = await create('POST', `/apps/${appId}/affiliates`, { name: 'Creator' });
  await create('POST', `/apps/${appId}/links`, {
    affiliateId,
    slug: SLUG,
    destinationUrl: 'https://example.com',
  });
  const newUser = async () => {
    const [deviceId, claimToken, user] = [randomUUID(), randomUUID(), `user-${randomUUID()}`];
    const at = Date.now() - 60 * DAY_MS;
    const clicked = await click(base, appId, claimToken, at);
    if (clicked.status >= 300) throw new Error(`the click: ${clicked.status} ${clicked.text}`);
    await call('POST', '/sdk/install', { deviceId, claimToken, firstOpenAt: at + 1 }, sdkKey);
    await call('POST', '/sdk/identify', { deviceId, customerUserId: user, identifiedAt: Date.now() }, sdkKey);
    return user;
  };
  const users = await Promise.all(Array.from({ length: USERS }, newUser));
  const exportRoute = `/apps/${appId}/affiliates/${affiliateId}/payouts/export`;
  const purchase = (userId: string) => {
    const body = bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: Date.now() - 40 * DAY_MS }));
    const headers = { authorization: secret };
    return async () => await send(base, 'POST', `/webhooks/revenuecat/${appId}`, { body, headers });
  };
  const payOut = async () => await call('POST', exportRoute);
  const bought = await purchase(users[0] ?? '')();
  if (!bought.text.includes('com_')) throw new Error(`the purchase earned nothing: ${bought.text}`);
  const csv = await payOut();
  if (!csv.includes(',200,2.00,USD,')) throw new Error(`the payout lacks the commission: ${csv}`);
  say('The story is complete: a click, an install, a purchase, and its commission in the payout CSV');
  return { base, appId, key, users, exportRoute, purchase, payOut };
}
