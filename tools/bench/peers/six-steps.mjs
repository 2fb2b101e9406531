import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import postgres from 'postgres';

/**
 * The six steps of a delivery as anyone would write them first: one simple statement each, on tables with the keys that
 * they need and nothing else. Each step may run twice.
 */
const TABLES = `
  create table if not exists secrets (provider text primary key, secret text not null);
  create table if not exists bindings (customer_user_id text primary key, affiliate_id text not null, rate_bps int not null);
  create table if not exists deliveries (id text primary key, received_at timestamptz not null default now(), body bytea not null);
  create table if not exists events (id text primary key, delivery_id text not null references deliveries (id),
    customer_user_id text not null, payment_ref text not null unique, amount_cents bigint not null, duplicate boolean);
  create table if not exists commissions (id text primary key, event_id text not null unique references events (id),
    affiliate_id text not null, amount_cents bigint not null, status text not null default 'pending', due_at timestamptz not null)`;

/** Connects, creates the tables, and returns the steps. */
export async function openSteps(databaseUrl, secret, users) {
  const sql = postgres(databaseUrl, { max: 20, onnotice: () => {} });
  await sql.unsafe(TABLES);
  await sql`insert into secrets values ('stripe', ${secret}) on conflict do nothing`;
  for (const user of users)
    await sql`insert into bindings values (${user}, 'creator', 2000) on conflict do nothing`;
  return {
    sql,
    async verify({ body, signature }) {
      const [row] = await sql`select secret from secrets where provider = 'stripe'`;
      const { t, v1 } = Object.fromEntries(signature.split(',').map((part) => part.split('=')));
      const expected = createHmac('sha256', row.secret).update(`${t}.${body}`).digest();
      if (!timingSafeEqual(expected, Buffer.from(v1, 'hex'))) throw new Error('the signature is wrong');
    },
    async store({ deliveryId, body }) {
      await sql`insert into deliveries (id, body) values (${deliveryId}, ${Buffer.from(body)}) on conflict do nothing`;
    },
    async normalize({ deliveryId, body }) {
      const { id, data } = JSON.parse(body);
      const { customer, metadata, amount_paid: amount, id: ref, parent } = data.object;
      const user = parent?.subscription_details?.metadata?.app_user_id ?? metadata?.app_user_id ?? customer;
      return { eventId: id, deliveryId, user, ref, amount };
    },
    async dedupe({ eventId, deliveryId, user, ref, amount }) {
      await sql`insert into events (id, delivery_id, customer_user_id, payment_ref, amount_cents)
                values (${eventId}, ${deliveryId}, ${user}, ${ref}, ${amount}) on conflict do nothing`;
    },
    async attribute({ user }) {
      const [row] = await sql`select affiliate_id, rate_bps from bindings where customer_user_id = ${user}`;
      return row === undefined ? null : { affiliateId: row.affiliate_id, rateBps: row.rate_bps };
    },
    async commission({ eventId, amount }, attributed) {
      if (attributed === null) return null;
      const id = `com_${eventId}`;
      await sql`insert into commissions (id, event_id, affiliate_id, amount_cents, due_at)
                values (${id}, ${eventId}, ${attributed.affiliateId}, ${Math.floor((amount * attributed.rateBps) / 10_000)},
                        now() + interval '30 days') on conflict do nothing`;
      return id;
    },
  };
}

export const newDeliveryId = () => randomUUID();
