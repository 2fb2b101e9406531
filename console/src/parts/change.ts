import { formatRate } from '../format.ts';

/** How much more or less a value is than the one before it, in words and in short. Null without a value before. */
export function changeOf(
  now: number,
  before: number,
): { readonly short: string; readonly words: string } | null {
  if (before <= 0) return null;
  const bps = Math.round((Math.abs(now - before) / before) * 1_000) * 10;
  if (bps === 0) return { short: '0 %', words: 'hardly changed' };
  return { short: `${now > before ? '▲' : '▼'} ${formatRate(bps)}`, words: now > before ? 'up' : 'down' };
}
