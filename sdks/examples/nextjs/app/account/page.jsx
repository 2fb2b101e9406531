import { cookies } from 'next/headers';
import { Affiliate } from '../affiliate';

export default async function Page() {
  const user = (await cookies()).get('user')?.value;
  return (
    <main>
      <h1>Account</h1>
      <p>Signed in as {user ?? 'nobody'}</p>
      <Affiliate />
    </main>
  );
}
