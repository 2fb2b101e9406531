import type { NormalizedEvent } from '../domain/events.ts';
import { adapty } from './adapty/index.ts';
import { withCheckedIds } from './checked-ids.ts';
import { paddle } from './paddle/index.ts';
import type { Provider } from './provider.ts';
import { revenuecat } from './revenuecat/index.ts';
import { stripe } from './stripe/index.ts';
import { superwall } from './superwall/index.ts';
import { withTotalParse } from './total-parse.ts';

/** A provider whose `parse` never throws, and names real users only. */
const checked = (provider: Provider): Provider => withTotalParse(withCheckedIds(provider));

/** Every supported provider by its name, in the order in which lists show them. A new provider is one line here. */
export const providers = {
  revenuecat: checked(revenuecat),
  adapty: checked(adapty),
  superwall: checked(superwall),
  stripe: checked(stripe),
  paddle: checked(paddle),
} as const satisfies Readonly<Record<string, Provider>>;

export type ProviderName = keyof typeof providers;

/** The names of all providers, as used in URLs and in the database. */
export const PROVIDER_NAMES = Object.keys(providers) as readonly string[] as readonly ProviderName[];

/** Returns whether `text` is the name of a provider. Names are in lower case. */
export function isProviderName(text: string): text is ProviderName {
  return Object.hasOwn(providers, text);
}

/** Returns the name of a provider as people know it, and any other text as it is. */
export function titleOf(provider: string): string {
  return isProviderName(provider) ? providers[provider].title : provider;
}

/**
 * Returns the event of a body, also of one that does not count, whatever the app lists now. Null if it has none or this version
 * cannot read it.
 */
export function eventIn(provider: string, body: Buffer): NormalizedEvent | null {
  if (!isProviderName(provider)) return null;
  const result = providers[provider].parse(body, 'all');
  return result.outcome === 'failed' ? null : result.event;
}
