import { signUp } from './actions';
import { Affiliate } from './affiliate';

export default function Page() {
  return (
    <main>
      <h1>Example shop</h1>
      <Affiliate />
      <form action={signUp}>
        <input name="user" placeholder="user id" required />
        <button>Sign up</button>
      </form>
    </main>
  );
}
