// A shop with Express that reports its sign-ups: TRIBUTARY_SDK_KEY=pk_live_… TRIBUTARY_API_BASE_URL=http://… node server.mjs [PORT]
import { createTributary } from '@tributary/node';
import express from 'express';

const tributary = createTributary({ debug: true });
const app = express();
app.use(express.json());

// `url` is the address that the visitor arrived at, which the page of the shop keeps until the sign-up.
app.post('/signup', async (request, response) => {
  const { userId, url, code } = request.body;
  const referral = await tributary.trackSignup({ userId, url, code });
  response.json({ affiliateId: referral?.affiliateId ?? null });
});

const server = app.listen(Number(process.argv[2] ?? 8082), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
