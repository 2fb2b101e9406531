import { adapty } from './adapty.ts';
import { paddle } from './paddle.ts';
import { PROVIDER_NAMES } from './provider.ts';
import type { Provider, ProviderName } from './provider.ts';
import { revenuecat } from './revenuecat.ts';
import { stripe } from './stripe.ts';
import { superwall } from './superwall.ts';

/** The providers this service can verify and read, under the names that stand in URLs. */
export const providers: Readonly<Record<ProviderName, Provider>> = {
  revenuecat,
  adapty,
  superwall,
  stripe,
  paddle,
};

/** Whether `text` is one of the provider names, as they stand in URLs. */
export function isProviderName(text: string): text is ProviderName {
  return PROVIDER_NAMES.some((name) => name === text);
}
