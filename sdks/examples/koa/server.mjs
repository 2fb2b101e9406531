// A shop with Koa that attributes its visitors and reports who signs up: TRIBUTARY_SDK_KEY=pk_live_… TRIBUTARY_API_BASE_URL=http://… node server.mjs [PORT]
import { randomUUID } from 'node:crypto';
import { createTributary } from '@tributary/node';
import Koa from 'koa';

const tributary = createTributary({ debug: true });
const app = new Koa();

// Each visitor is a device. The SDK ignores an address without a referral.
app.use(async (ctx, next) => {
  ctx.state.visitor = ctx.cookies.get('visitor') ?? randomUUID();
  ctx.cookies.set('visitor', ctx.state.visitor, { maxAge: 365 * 86_400_000, sameSite: 'lax' });
  // Not awaited: the page does not wait for it.
  void tributary.device(ctx.state.visitor).attribute(ctx.href);
  await next();
});

app.use(async (ctx) => {
  if (ctx.method === 'POST' && ctx.path === '/signup') {
    const device = tributary.device(ctx.state.visitor);
    const isBound = await device.identify(String(ctx.query.user));
    ctx.body = { isBound, affiliateId: await device.attributedAffiliateId() };
  } else if (ctx.path === '/') {
    ctx.body = 'Welcome to the shop.\n';
  }
});

const server = app.listen(Number(process.argv[2] ?? 8083), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
