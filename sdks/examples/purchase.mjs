// Posts a signed purchase of 100 USD by a user, like Stripe does, and prints its commission:
//   TRIBUTARY_API_BASE_URL=http://… KEY=tri_sk_live_… APP=app_… node purchase.mjs USER
import { createHmac, randomUUID } from 'node:crypto';

const { TRIBUTARY_API_BASE_URL: base, KEY: key, APP: app } = process.env;
const [user] = process.argv.slice(2);
if (!base || !key || !app || !user) {
  console.error('Set TRIBUTARY_API_BASE_URL, KEY and APP, and name a user.');
  process.exit(2);
}

async function call(method, path, headers, body) {
  const response = await fetch(base + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}
const account = { authorization: `Bearer ${key}` };

const secret = `whsec_${randomUUID()}`;
await call('PUT', `/apps/${app}/webhooks/stripe/secret`, account, JSON.stringify({ secret }));

const now = Math.floor(Date.now() / 1000);
const id = randomUUID().replaceAll('-', '').slice(0, 24);
const session = {
  id: `cs_live_${id}`,
  object: 'checkout.session',
  mode: 'payment',
  payment_status: 'paid',
  payment_intent: `pi_${id}`,
  client_reference_id: user,
  amount_total: 10_000,
  amount_subtotal: 10_000,
  currency: 'usd',
  livemode: true,
  created: now,
  metadata: {},
};
const event = JSON.stringify({
  id: `evt_${id}`,
  object: 'event',
  type: 'checkout.session.completed',
  created: now,
  livemode: true,
  data: { object: session },
});
const signature = createHmac('sha256', secret).update(`${now}.${event}`).digest('hex');
const answer = await call(
  'POST',
  `/webhooks/stripe/${app}`,
  { 'stripe-signature': `t=${now},v1=${signature}` },
  event,
);
console.log(answer);
const { items } = await call('GET', `/apps/${app}/commissions?limit=20`, account);
const commission = items.find(({ eventId }) => eventId === answer.eventId);
console.log(
  commission ? `${commission.amountCents} cents for ${commission.affiliateName}` : 'No commission.',
);
