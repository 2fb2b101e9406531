// Reports a sign-up from the server: { "userId": "user-1", "code": "spring-video" }, or "url", the address that the visitor
// arrived at, instead of the code.
import { createTributary } from '@tributary/node';

const tributary = createTributary();

export async function POST(request) {
  const { userId, code, url } = await request.json();
  const referral = await tributary.trackSignup({ userId, code, url });
  // A serverless function may be stopped after its response.
  await tributary.flush(2000);
  return Response.json({ affiliateId: referral?.affiliateId ?? null });
}
