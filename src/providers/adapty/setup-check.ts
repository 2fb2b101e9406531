import type { SetupCheck } from '../provider.ts';
import { readJsonObject } from '../shared/read-body.ts';

/** Longer than any check that Adapty sends. Limits the text that a caller can have echoed. */
const MAX_CHECK_LENGTH = 1000;

/** Returns whether a body is Adapty's test request: empty, or in its older form a text to be echoed. */
export function isSetupCheck(json: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(json).length === 0 || ('adapty_check' in json && !('event_type' in json));
}

/** Adapty reads its own text back from the response. */
export const setupCheck: SetupCheck = {
  responseField: 'adapty_check_response',
  responseTo(bytes) {
    const json = readJsonObject(bytes);
    const check = json.ok && isSetupCheck(json.value) ? json.value['adapty_check'] : undefined;
    return typeof check === 'string' && check.length <= MAX_CHECK_LENGTH ? check : null;
  },
};
