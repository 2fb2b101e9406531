import { TributaryProvider } from '@tributary/web/react';
import { cookies } from 'next/headers';
import Link from 'next/link';
import { Consent } from './consent';

export const metadata = { title: 'Tributary example', icons: 'data:,' };

export default async function Layout({ children }) {
  // Read when a page is requested, not when the app is built.
  const user = (await cookies()).get('user')?.value;
  const { TRIBUTARY_SDK_KEY, TRIBUTARY_API_BASE_URL } = process.env;
  return (
    <html lang="en">
      <body>
        <TributaryProvider apiKey={TRIBUTARY_SDK_KEY} apiBaseUrl={TRIBUTARY_API_BASE_URL} userId={user}>
          <nav>
            <Link href="/">Shop</Link> <Link href="/account">Account</Link>
          </nav>
          {children}
          <Consent />
        </TributaryProvider>
      </body>
    </html>
  );
}
