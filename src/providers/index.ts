import { PROVIDER_NAMES } from './provider.ts';
import type { Provider, ProviderName } from './provider.ts';
import { revenuecat } from './revenuecat.ts';
import { stripe } from './stripe.ts';

/**
 * The providers this service can verify and read. A webhook of a name without an entry is refused
 * like one whose signature does not match.
 */
export const providers: Readonly<Partial<Record<ProviderName, Provider>>> = { revenuecat, stripe };

/** Whether `text` is one of the provider names, as they stand in URLs. */
export function isProviderName(text: string): text is ProviderName {
  return PROVIDER_NAMES.some((name) => name === text);
}
