import type { Block, Foreign, MailContent, Part } from './layout.ts';

export type { Foreign } from './layout.ts';

/** A mail without its greeting and its footer. */
export type Message = Omit<MailContent, 'footer'>;

export const foreign = (text: string): Foreign => ({ foreign: text });
export const paragraph = (...parts: Part[]): Block => ({ type: 'paragraph', parts });
export const MONEY = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });

const DATE = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
});

/** Returns an instant for people, such as `26 November 2026, 14:05 UTC`. */
export function dateText(at: number): string {
  return `${DATE.format(at).replace(' at ', ', ')} UTC`;
}
