// A shop that reports its sign-ups: TRIBUTARY_SDK_KEY=pk_live_… TRIBUTARY_API_BASE_URL=http://… node server.mjs [PORT]
//   curl -X POST 'http://127.0.0.1:8081/signup?user=user-1&via=spring-video'
import { createServer } from 'node:http';
import { createTributary } from '../../js/node/dist/index.js';

const tributary = createTributary({ debug: true });

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://shop');
  if (request.method !== 'POST' || url.pathname !== '/signup') {
    response.writeHead(404).end();
    return;
  }
  const referral = await tributary.trackSignup({ userId: url.searchParams.get('user'), url });
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(referral));
});
server.listen(Number(process.argv[2] ?? 8081), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
