import { Signup } from './signup';

// The key is read when the page is requested, not when it is built.
export const dynamic = 'force-dynamic';

export default function Page() {
  const { TRIBUTARY_SDK_KEY, TRIBUTARY_API_BASE_URL } = process.env;
  return <Signup apiKey={TRIBUTARY_SDK_KEY} apiBaseUrl={TRIBUTARY_API_BASE_URL} />;
}
