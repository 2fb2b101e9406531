import { IDS_PER_EVENT, namesTooMany, withAnonymousKeys, withoutPlaceholders } from '../domain/user-ids.ts';
import type { Provider } from './provider.ts';
import { failed } from './shared/normalized-event.ts';

/**
 * Returns the provider with a `parse` whose events name real users, and a bounded number of them: the cost of an event grows with
 * what it names, and a tenant that can sign events shares the service with others.
 */
export function withCheckedIds(provider: Provider): Provider {
  return {
    ...provider,
    parse(body, accounts) {
      const result = provider.parse(body, accounts);
      if (result.outcome === 'failed' || result.event === null) return result;
      if (namesTooMany(result.event)) {
        return failed(`the event names more than ${IDS_PER_EVENT} users and keys`);
      }
      return { ...result, event: withAnonymousKeys(withoutPlaceholders(result.event)) };
    },
  };
}
