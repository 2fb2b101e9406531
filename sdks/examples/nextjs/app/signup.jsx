'use client';

import { attributedAffiliateId, identify, start } from '@tributary/web';
import { useEffect, useState } from 'react';

export function Signup({ apiKey, apiBaseUrl }) {
  const [affiliate, setAffiliate] = useState(null);
  const [result, setResult] = useState('');
  useEffect(() => {
    start({ apiKey, apiBaseUrl, onAttribution: setAffiliate }).then(() =>
      setAffiliate(attributedAffiliateId()),
    );
  }, [apiKey, apiBaseUrl]);

  const signUp = async (form) => setResult(String(await identify(form.get('user'))));
  return (
    <main>
      <h1>Example shop</h1>
      <p>
        Affiliate: <output>{affiliate ?? 'none'}</output>
      </p>
      <form action={signUp}>
        <input name="user" placeholder="user id" required />
        <button>Sign up</button>
      </form>
      <p role="status">{result}</p>
    </main>
  );
}
