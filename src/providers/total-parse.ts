import type { Provider } from './provider.ts';
import { failed } from './shared/normalized-event.ts';

/**
 * Returns the provider with a `parse` that never throws: an exception becomes a `failed` result. A delivery whose parser
 * throws would be retried for ever, for example when a deeply nested value makes JSON.stringify run out of stack. The reason
 * has the error's class only, since its message may quote personal data.
 */
export function withTotalParse(provider: Provider): Provider {
  return {
    ...provider,
    parse(body, accounts) {
      try {
        return provider.parse(body, accounts);
      } catch (error) {
        const name = error instanceof Error ? `a ${error.name}` : 'an unknown error';
        return failed(
          `reading the body ended with ${name}, for example because its values are nested too deeply; the delivery is kept, so a version that can read it can reprocess it`,
        );
      }
    },
  };
}
