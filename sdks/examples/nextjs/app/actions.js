'use server';

import { cookies } from 'next/headers';

/** Signs a user up. Next.js then renders the layout again, whose provider binds the user. A real app starts a session here. */
export async function signUp(form) {
  (await cookies()).set('user', form.get('user'), { httpOnly: true, sameSite: 'lax' });
}
