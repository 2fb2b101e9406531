'use client';

import { setEnabled } from '@tributary/web';
import { useEffect, useState } from 'react';

const KEY = 'consent';
// This runs before the provider starts the SDK. Without a choice the referral waits in memory, and nothing is sent.
if (typeof window !== 'undefined') setEnabled(localStorage.getItem(KEY) === 'granted');

export function Consent() {
  const [choice, setChoice] = useState('');
  useEffect(() => setChoice(localStorage.getItem(KEY) ?? 'none yet'), []);

  const choose = (next) => {
    localStorage.setItem(KEY, next);
    setEnabled(next === 'granted');
    setChoice(next);
  };
  return (
    <aside>
      <p>May we credit the creator who sent you? Your choice: {choice}</p>
      <button onClick={() => choose('granted')}>Accept</button>
      <button onClick={() => choose('refused')}>Refuse</button>
    </aside>
  );
}
