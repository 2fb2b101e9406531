// Breaks each rule in the TypeScript core, one at a time, and checks that a scenario fails. Prints the mutants that no
// scenario noticed and exits with 1 if there is one, or if a scenario fails with the unbroken core. `node mutants.mjs TEXT` tries only those whose name contains TEXT.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { ABILITIES, APP_ABILITIES, createDriver } from '../js/node/test/driver.mjs';
import { isPlayable, play, readScenarios } from './play.mjs';
import { startServer } from './server.mjs';

const JS = fileURLToPath(new URL('../js/', import.meta.url));
const { build } = createRequire(join(JS, 'build.mjs'))('esbuild');

/** The rule, what is broken, the file in core/src, and the text that is replaced by another. */
const MUTANTS = [
  [
    1,
    'requests are sent before the state is stored',
    'client.ts',
    '    await saved;\n    if (inFlight',
    '    if (inFlight',
  ],
  [
    1,
    'a new touch is not stored',
    'client.ts',
    'touch].slice(-MAX_WAITING);\n    save(state);',
    'touch].slice(-MAX_WAITING);',
  ],
  [
    1,
    'a new user is not stored',
    'client.ts',
    'slice(-MAX_WAITING);\n        save(state);',
    'slice(-MAX_WAITING);',
  ],
  [
    1,
    'an answer is not stored',
    'client.ts',
    'answer, isAttributed);\n    save(state);',
    'answer, isAttributed);',
  ],
  [
    1,
    'a damaged state throws',
    'state.ts',
    '} catch {\n    return undefined;',
    '} catch (error) {\n    throw error;',
  ],
  [
    1,
    'the times of elements are not checked',
    'state.ts',
    '[state.firstOpenAt, state.notBefore, ...times]',
    '[state.firstOpenAt, state.notBefore]',
  ],
  [1, 'the texts of elements are not checked', 'state.ts', '[state.deviceId, ...texts]', '[state.deviceId]'],
  [
    1,
    'the status of users is not checked',
    'state.ts',
    '/^(pending|unattributed|bound)$/.test(status)',
    'true',
  ],
  [1, 'the host is not compared', 'state.ts', 'state.host === host &&', ''],
  [1, 'a test key has the state of the live key', 'client.ts', '`${host}#test`', 'host'],
  [
    1,
    'an unreadable storage is overwritten',
    'client.ts',
    'let isStorageUsable = storedText !== undefined;',
    'let isStorageUsable = true;',
  ],
  [1, 'a failed write is not caught', 'client.ts', '        .catch(giveUpStorage);', ';'],
  [
    2,
    'the state is stored at another place',
    'client.ts',
    'storage.set(key, text)',
    'storage.set(`${key}.2`, text)',
  ],
  [
    2,
    'the state is never removed from its place',
    'client.ts',
    'storage.remove(key)',
    'storage.remove(`${key}.2`)',
  ],
  [
    3,
    'the first open is renewed at each start',
    'client.ts',
    'if (state.enabled || isReplaced) save(state);',
    'state.firstOpenAt = platform.now();\n      if (state.enabled || isReplaced) save(state);',
  ],
  [
    3,
    'the first open is renewed at each retry',
    'client.ts',
    'const { deviceId, firstOpenAt } = latest;',
    'const { deviceId } = latest;\n    const firstOpenAt = platform.now();',
  ],
  [3, 'the device is not stored at start', 'client.ts', 'if (state.enabled || isReplaced) save(state);', ''],
  [4, 'a missing key is not noticed', 'options.ts', 'if (!apiKey)', 'if (apiKey === null)'],
  [
    4,
    'a missing base address is not noticed',
    'options.ts',
    '!/^https?:\\/\\/[^/]/.test(host)',
    'host === null',
  ],
  [5, 'code is read as a referral', 'referral.ts', "values['via'])", "values['via'] ?? values['code'])"],
  [5, 'ref is read as a referral', 'referral.ts', "values['via'])", "values['via'] ?? values['ref'])"],
  [5, 'any claim token is sent', 'referral.ts', 'UUID.test(text as string) ?', "text !== '' ?"],
  [
    5,
    'the code is left out beside a token',
    'referral.ts',
    'code: asCode(code) }',
    'code: asClaimToken(claimToken) ? undefined : asCode(code) }',
  ],
  [5, 'the fragment is read', 'referral.ts', '[^?#]*\\?([^#]*)/', '[^?]*\\?([^#]*)/'],
  [
    5,
    'a malformed escape throws',
    'referral.ts',
    '} catch {\n      // A',
    '} catch (error) {\n      throw error;\n      // A',
  ],
  [
    5,
    'escapes are not decoded',
    'referral.ts',
    "decodeURIComponent(value.join('=').replace(/\\+/g, ' '))",
    "(decodeURIComponent(value.join('=')), value.join('='))",
  ],
  [5, 'an empty parameter hides the next', 'referral.ts', 'values[name] ||=', 'values[name] ??='],
  [5, 'spaces around a code stay', 'referral.ts', 'text.trim()', 'text'],
  [5, 'a code of any length is sent', 'referral.ts', '{1,200}', '{1,2000}'],
  [6, 'the deferred match does not wait', 'client.ts', 'DEFERRED_DELAY_MS = 2_000', 'DEFERRED_DELAY_MS = 0'],
  [
    6,
    'the deferred match is asked for beside a link',
    'client.ts',
    '      !latest.affiliateId &&\n      !latest.answered[0] &&\n',
    '',
  ],
  [6, 'a link does not wake the wait for the deferred match', 'client.ts', '    wake?.();\n', ''],
  [
    6,
    'the deferred match is asked for beside an answered code',
    'client.ts',
    '      !latest.answered[0] &&\n',
    '',
  ],
  [
    6,
    'the deferred match is done when it is sent',
    'client.ts',
    '    await saved;\n    if (inFlight',
    '    if (!user && !touch) {\n      latest.isDeferredAnswered = true;\n      save(latest);\n    }\n    await saved;\n    if (inFlight',
  ],
  [6, 'the deferred match is never done', 'client.ts', 'else state.isDeferredAnswered = true;', ''],
  [
    6,
    'the last day of the deferred match counts after a correction',
    'client.ts',
    '(latest.isFirstOpenCorrected || platform.now() - latest.firstOpenAt <= ONE_DAY_MS)',
    'platform.now() - latest.firstOpenAt <= ONE_DAY_MS',
  ],
  [
    6,
    'the deferred match has no last day',
    'client.ts',
    'platform.now() - latest.firstOpenAt <= ONE_DAY_MS',
    'true',
  ],
  [
    6,
    'the deferred match does not need a storage',
    'client.ts',
    '      isStorageUsable &&\n      deferredMatch',
    '      deferredMatch',
  ],
  [6, 'the deferred match is asked for without being turned on', 'client.ts', '      deferredMatch &&\n', ''],
  [
    6,
    'a user does not wait for the deferred match',
    'client.ts',
    'if (needsDeferred) return',
    'if (needsDeferred && !user) return',
  ],
  [
    7,
    'users are sent before touches',
    'client.ts',
    '    if (touch) return { touch };',
    '    if (user) return { user };\n    if (touch) return { touch };',
  ],
  [
    7,
    'requests are sent side by side',
    'client.ts',
    'if (!isRunning && !isHeld) void run();',
    'if (!isHeld) void run();',
  ],
  [7, 'six touches are kept', 'client.ts', 'touch].slice(-MAX_WAITING)', 'touch].slice(-6)'],
  [
    7,
    'the newest touch is dropped',
    'client.ts',
    'touch].slice(-MAX_WAITING)',
    'touch].slice(0, MAX_WAITING)',
  ],
  [7, 'six users are kept', 'client.ts', 'user].slice(-MAX_WAITING)', 'user].slice(-6)'],
  [
    7,
    'touches never expire',
    'state.ts',
    'state.touches.filter(({ at }) => now - at <= MAX_AGE_MS)',
    'state.touches',
  ],
  [7, 'users never expire', 'state.ts', "status === 'bound' || now - at <= MAX_AGE_MS", 'true'],
  [7, 'the last day of the 90 does not count', 'state.ts', '90 * DAY_MS', '90 * DAY_MS - 1'],
  [
    6,
    'the deferred match waits for a clock that was set back',
    'client.ts',
    'deferredIn > 0 && deferredIn <= DEFERRED_DELAY_MS',
    'deferredIn > 0',
  ],
  [
    7,
    'answered touches are sent again',
    'client.ts',
    '      state.answered.some(({ touch: known }) => known === identity);',
    '      false;',
  ],
  [
    7,
    'waiting touches are queued twice',
    'client.ts',
    '      state.touches.some((other) => touchIdentity(other) === identity) ||\n',
    '',
  ],
  [7, 'codes are compared with their case', 'state.ts', 'code.toLowerCase()', 'code'],
  [
    7,
    'the code alone identifies a touch',
    'state.ts',
    '`${claimToken} ${code.toLowerCase()}`',
    '`${code.toLowerCase() || claimToken}`',
  ],
  [7, 'eleven answered touches are remembered', 'state.ts', 'MAX_ANSWERED = 10', 'MAX_ANSWERED = 11'],
  [7, 'nine answered touches are remembered', 'state.ts', 'MAX_ANSWERED = 10', 'MAX_ANSWERED = 9'],
  [
    7,
    'a refused code can never be entered again',
    'client.ts',
    'if (isEntered && answerIn(state) === false)',
    'if (false)',
  ],
  [
    7,
    'a refused code of an address is sent again',
    'client.ts',
    'if (isEntered && answerIn(state) === false)',
    'if (answerIn(state) === false)',
  ],
  [8, 'the user id is trimmed', 'client.ts', 'customerUserId: user.id,', 'customerUserId: user.id.trim(),'],
  [8, 'an empty user id is sent', 'client.ts', '!userId ||', ''],
  [
    8,
    'a user id of 513 characters is sent',
    'client.ts',
    'MAX_USER_ID_LENGTH = 512',
    'MAX_USER_ID_LENGTH = 513',
  ],
  [
    8,
    'a bound user is sent again',
    'client.ts',
    "if (isRefused(state)) return false;\n      if (known?.status === 'bound') return true;",
    "if (isRefused(state)) return false;\n      if (known) known.status = 'pending';",
  ],
  [
    8,
    'a user without attribution is sent with every call',
    'client.ts',
    'const isNew = !known || known.signature !== signature;',
    "const isNew = !known || known.signature !== signature;\n      if (known?.status === 'unattributed') known.status = 'pending';",
  ],
  [
    8,
    'a user without attribution is forgotten',
    'client.ts',
    "user.status = 'unattributed';",
    'state.users = [];',
  ],
  [
    8,
    'a refusal drops a user who came with another signature meanwhile',
    'client.ts',
    'else if (sent.signature === user.signature) {',
    'else {',
  ],
  [
    8,
    'a user without attribution is not sent again',
    'client.ts',
    "if (user.status === 'unattributed') user.status = 'pending';",
    ';',
  ],
  [
    8,
    'a user is not kept after a failure',
    'client.ts',
    '      failures += 1;\n',
    '      failures += 1;\n      state.users = [];\n',
  ],
  [
    8,
    'the time of an identify is the time of the request',
    'client.ts',
    'identifiedAt: user.at',
    'identifiedAt: platform.now()',
  ],
  [
    8,
    'the affiliate of an identify is ignored',
    'client.ts',
    'if (!state.affiliateId) attributed(state, answer.body.affiliateId);',
    '',
  ],
  [
    8,
    'the affiliate of an identify replaces that of the device',
    'client.ts',
    'if (!state.affiliateId) attributed',
    'attributed',
  ],
  [8, 'the signature is not sent', 'client.ts', ', signature: user.signature }', ' }'],
  [
    9,
    'any 200 is an answer',
    'send.ts',
    "status === 200 && (typeof attributionId === 'string' || attributionId === null)",
    'status === 200',
  ],
  [9, 'any success is an answer', 'send.ts', 'if (status === 200 &&', 'if (status < 300 &&'],
  [9, 'redirects are followed', 'send.ts', "redirect: 'error'", "redirect: 'follow'"],
  [
    9,
    'every 404 is an answer',
    'send.ts',
    'FINAL_CODES[status]?.includes(code)',
    '(status === 404 || FINAL_CODES[status]?.includes(code))',
  ],
  [
    9,
    'every 404 with a code is an answer',
    'send.ts',
    'FINAL_CODES[status]?.includes(code)',
    "(status === 404 ? code !== '' : FINAL_CODES[status]?.includes(code))",
  ],
  [9, 'our 404 is a wrong host', 'send.ts', "404: ['no_attributable_click', 'no_attribution']", '404: []'],
  [
    9,
    'a wrong path is retried',
    'send.ts',
    '(status as number) in FINAL_CODES',
    'status !== 404 && (status as number) in FINAL_CODES',
  ],
  [9, 'a wrong key is retried', 'send.ts', '(status as number) in FINAL_CODES', 'status === 404'],
  [
    9,
    'a wrong key is final',
    'send.ts',
    '[400, 409, 413, 422].includes',
    '[400, 401, 403, 409, 413, 422].includes',
  ],
  [9, 'a wrong key does not stop the others', 'client.ts', '      halt.isMisconfigured = true;\n', ''],
  [9, 'a wrong key is not logged', 'client.ts', 'warn(`The service answered', 'String(`The service answered'],
  [9, 'a bad signature stops everything', 'send.ts', "['signature_required', 'invalid_signature']", '[]'],
  [
    9,
    'a 404 of a proxy is a wrong key or path',
    'send.ts',
    "isStrange(status) && typeof code === 'string' && code ?",
    'isStrange(status) ?',
  ],
  [9, 'a 404 of a proxy is not logged', 'client.ts', 'isStrange(answer.status) &&', 'false &&'],
  [9, 'a 404 of a proxy is logged each time', 'client.ts', '        halt.isReported = true;\n', ''],
  [9, '400 is retried', 'send.ts', '[400, 409, 413, 422]', '[409, 413, 422]'],
  [9, '409 is retried', 'send.ts', '[400, 409, 413, 422]', '[400, 413, 422]'],
  [9, '413 is retried', 'send.ts', '[400, 409, 413, 422]', '[400, 409, 422]'],
  [9, '422 is retried', 'send.ts', '[400, 409, 413, 422]', '[400, 409, 413]'],
  [9, '408 is final', 'send.ts', '[400, 409,', '[400, 408, 409,'],
  [9, '425 is final', 'send.ts', '[400, 409,', '[400, 425, 409,'],
  [9, '429 is final', 'send.ts', '[400, 409,', '[400, 429, 409,'],
  [9, '500 is final', 'send.ts', '[400, 409,', '[400, 500, 409,'],
  [10, 'the wait does not grow', 'client.ts', '1000 * 2 ** failures', '2000'],
  [10, 'the wait never becomes long', 'client.ts', ' : LONG_WAIT_MS', ' : 60_000'],
  [10, 'the long wait is half as long', 'client.ts', 'LONG_WAIT_MS = 600_000', 'LONG_WAIT_MS = 300_000'],
  [10, 'the wait is not varied', 'client.ts', 'wait * (factor - 0.5)', 'wait * 0.5'],
  [10, 'the wait of a Retry-After is not varied', 'client.ts', 'answer.afterMs * factor', 'answer.afterMs'],
  [10, 'seven tries', 'client.ts', 'TRIES = 6', 'TRIES = 7'],
  [10, 'five tries', 'client.ts', 'TRIES = 6', 'TRIES = 5'],
  [10, 'every call tries at once', 'client.ts', 'if (isNew || !cancelRetry) flush();', 'flush();'],
  [10, 'a new call waits', 'client.ts', 'if (isNew || !cancelRetry) flush();', 'if (!cancelRetry) flush();'],
  [
    10,
    'a success does not begin the count anew',
    'client.ts',
    '    failures = 0;\n    const isAttributed',
    '    const isAttributed',
  ],
  [
    10,
    'a start and the foreground try at once after a failure',
    'client.ts',
    'if (failures > 0 && wait > 0 &&',
    'if (false &&',
  ],
  [
    10,
    'a start waits ten seconds after a failure',
    'client.ts',
    'EVENT_DELAY_MS = 5_000',
    'EVENT_DELAY_MS = 10_000',
  ],
  [
    10,
    'a start begins the count of failures anew',
    'client.ts',
    '      } else flush();\n    },',
    '      } else {\n        failures = 0;\n        flush();\n      }\n    },',
  ],
  [10, 'Retry-After as a date counts from the clock of the device', 'send.ts', 'date || now', 'now'],
  [10, 'a start does not try', 'client.ts', '      client.retry();\n', ''],
  [10, 'Retry-After is ignored', 'send.ts', '  const ms = /^', '  return 0;\n  const ms = /^'],
  [
    10,
    'Retry-After is not stored',
    'client.ts',
    'state.notBefore = failedAt +',
    'halt.notBefore = failedAt +',
  ],
  [10, 'Retry-After is not obeyed by calls', 'client.ts', 'if (pause > 0 &&', 'if (false &&'],
  [
    10,
    'a clock that was set back by hours prolongs a Retry-After',
    'client.ts',
    ' && !(pause > longer.pauseMs!)',
    '',
  ],
  [
    10,
    'the length of a Retry-After is not stored',
    'client.ts',
    '(state.pauseMs = answer.afterMs)',
    'answer.afterMs',
  ],
  [10, 'Retry-After as a date is ignored', 'send.ts', 'Date.parse(value) - now', '0'],
  [
    10,
    'Retry-After has no limit',
    'send.ts',
    'Math.min(Math.max(ms || 0, 0), ONE_DAY_MS)',
    'Math.max(ms || 0, 0)',
  ],
  [10, 'an unreadable Retry-After is not a number', 'send.ts', 'ms || 0', 'ms'],
  [10, 'a Retry-After of an earlier build has no limit', 'client.ts', ' && pause <= ONE_DAY_MS', ''],
  [
    11,
    'the first open is not corrected',
    'client.ts',
    "const clockErrorMs = clockErrorOf(answer, 'firstOpenAt');",
    'const clockErrorMs = 0;',
  ],
  [
    11,
    'the first open is corrected for any reason',
    'client.ts',
    "const clockErrorMs = clockErrorOf(answer, 'firstOpenAt');",
    'const { clockErrorMs } = answer;',
  ],
  [11, 'the first open is corrected again and again', 'client.ts', '&& !state.isFirstOpenCorrected', ''],
  [
    11,
    'a difference of a minute is corrected',
    'send.ts',
    'Math.abs(error) > CLOCK',
    'Math.abs(error) >= CLOCK',
  ],
  [
    11,
    'the time of an identify is not corrected',
    'client.ts',
    "if (isCorrected(user, clockErrorOf(answer, 'identifiedAt'))) return;",
    '',
  ],
  [11, 'the time of an identify is corrected again and again', 'client.ts', ' || item.isCorrected', ''],
  [11, 'the time of a code is not corrected', 'client.ts', '!isCorrected(touch, codeErrorMs)', 'true'],
  [
    11,
    'a code whose time is refused for good is not sent without it',
    'client.ts',
    'codeErrorMs === undefined || touch.isUntimed',
    '!codeErrorMs || touch.isCorrected',
  ],
  [
    11,
    'a code without a time is sent for ever',
    'client.ts',
    'codeErrorMs === undefined || touch.isUntimed',
    'codeErrorMs === undefined',
  ],
  [
    11,
    'a code is sent without its time after any refusal',
    'client.ts',
    'codeErrorMs === undefined || touch.isUntimed',
    'answer.status !== 400 || touch.isUntimed',
  ],
  [
    11,
    'the time of a code is not sent',
    'client.ts',
    '!touch.isUntimed ? touch.at',
    '!touch.isUntimed ? undefined',
  ],
  [
    11,
    'a time is sent without a code',
    'client.ts',
    'touch?.code && !touch.isUntimed',
    'touch && !touch.isUntimed',
  ],
  [
    11,
    'the time of a code is that of the request',
    'client.ts',
    '!touch.isUntimed ? touch.at',
    '!touch.isUntimed ? platform.now()',
  ],
  [11, 'a time of 1970 is sent', 'state.ts', '(at >= EARLIEST_MS || now < EARLIEST_MS)', 'true'],
  [11, 'a time in the future is sent', 'state.ts', 'at <= now && (at', '(at'],
  [11, 'a corrected time is that of the device', 'state.ts', 'if (isCorrected || (', 'if (('],
  [
    11,
    'an unknown time of the service is a number',
    'send.ts',
    "Date.parse(headers.get('date') as string)",
    "Number(headers.get('date'))",
  ],
  [
    12,
    'a request never ends',
    'send.ts',
    'platform.after(REQUEST_TIMEOUT_MS, () => controller.abort())',
    'platform.after(REQUEST_TIMEOUT_MS, () => {})',
  ],
  [
    12,
    'a request ends after eleven seconds',
    'send.ts',
    'REQUEST_TIMEOUT_MS = 10_000',
    'REQUEST_TIMEOUT_MS = 11_000',
  ],
  [
    12,
    'a failed request throws',
    'send.ts',
    '    return { meaning: FAILED, status: error, body: {}, clockErrorMs: 0, afterMs: 0 };',
    '    throw error;',
  ],
  [
    12,
    'a code that nobody has is a success',
    'client.ts',
    "isAttributed && answer.body.touch !== 'unknown'",
    'true',
  ],
  [
    12,
    'an unknown code of an attributed device is a success',
    'client.ts',
    "isAttributed && answer.body.touch !== 'unknown'",
    'isAttributed',
  ],
  [
    12,
    'a touch that came second is a failure',
    'client.ts',
    "isAttributed && answer.body.touch !== 'unknown'",
    "isAttributed && answer.body.touch !== 'unknown' && answer.body.touch !== 'existing'",
  ],
  [
    12,
    'an answer without the field touch is a failure',
    'client.ts',
    "isAttributed && answer.body.touch !== 'unknown'",
    "isAttributed && ['won', 'existing'].includes(answer.body.touch ?? '')",
  ],
  [
    12,
    'the logger may throw',
    'options.ts',
    "    } catch {\n      // The host app's",
    "    } catch (error) {\n      throw error;\n      // The host app's",
  ],
  [
    13,
    'reset keeps what is stored',
    'client.ts',
    'if (enabled && !options.deferredMatch) store(null);\n    else save(latest);',
    'if (!enabled) save(latest);',
  ],
  [13, 'reset does nothing', 'client.ts', 'replaceState(enabled, true, isUndecided);', ''],
  [
    13,
    'reset leaves the deferred match to the next start',
    'client.ts',
    'replaceState(enabled, true, isUndecided);',
    'replaceState(enabled, false, isUndecided);',
  ],
  [
    13,
    'reset stores nothing about the deferred match',
    'client.ts',
    'if (enabled && !options.deferredMatch) store(null);',
    'if (enabled) store(null);',
  ],
  [
    13,
    'reset during an opt-out does nothing',
    'client.ts',
    'replaceState(enabled, true, isUndecided);',
    'if (enabled) replaceState(true, true);',
  ],
  [
    13,
    'a late answer counts',
    'client.ts',
    '    inFlight?.abort();\n    inFlight = undefined;\n    cancelTimers',
    '    cancelTimers',
  ],
  [13, 'reset does not cancel the request', 'client.ts', '    inFlight?.abort();\n', ''],
  [
    14,
    'an opt-in asks for a deferred match in the same process',
    'client.ts',
    '    deferredMatch = false;\n',
    '',
  ],
  [
    14,
    'an opt-in asks for an answered deferred match again',
    'client.ts',
    '        replaceState(enabled, state.isDeferredAnswered);',
    '        replaceState(enabled, false);',
  ],
  [
    14,
    'a start forgets whether an opt-out had an answered deferred match',
    'client.ts',
    'emptyState(false, stored.isDeferredAnswered,',
    'emptyState(false, false,',
  ],
  [
    13,
    'reset is an opt-in',
    'client.ts',
    'replaceState(enabled, true, isUndecided);',
    'replaceState(true, true);',
  ],
  [
    14,
    'an opt-out is not stored',
    'client.ts',
    'if (enabled && !options.deferredMatch) store(null);\n    else save(latest);',
    'store(null);',
  ],
  [
    14,
    'an opt-out does nothing',
    'client.ts',
    '        replaceState(enabled, state.isDeferredAnswered);',
    '        if (enabled) replaceState(enabled, state.isDeferredAnswered);',
  ],
  [
    14,
    'an opt-out still takes calls',
    'client.ts',
    "if (isRefused(state)) return false;\n      if (known?.status === 'bound') return true;",
    "if (known?.status === 'bound') return true;",
  ],
  [
    14,
    'an opt-out keeps the device id',
    'client.ts',
    "deviceId: enabled || isUndecided ? (!IS_SHARED && options.deviceId) || platform.newId() : '',",
    'deviceId: options.deviceId ?? platform.newId(),',
  ],
  [
    14,
    'an opt-in deletes what it finds',
    'client.ts',
    'else if (state.enabled !== enabled || state.isUndecided)',
    'else',
  ],
  [
    14,
    'an opt-out of another host is forgotten',
    'state.ts',
    'if (state.enabled === false) return state;',
    'if (state.enabled === false && state.host === host) return state;',
  ],
  [
    14,
    'an opt-out before the start is a refusal',
    'client.ts',
    'isHeld && !enabled && (isFresh || state.isUndecided)',
    'false',
  ],
  [
    14,
    'an opt-out after the start is no refusal',
    'client.ts',
    'isHeld && !enabled && (isFresh || state.isUndecided)',
    '!enabled && (isFresh || state.isUndecided)',
  ],
  [
    14,
    'an opt-out before the start of an installation with the consent is no refusal',
    'client.ts',
    'isHeld && !enabled && (isFresh || state.isUndecided)',
    'isHeld && !enabled',
  ],
  [
    14,
    'an undecided consent is a refusal in the next process',
    'client.ts',
    'stored.isDeferredAnswered, stored.isUndecided);',
    'stored.isDeferredAnswered, false);',
  ],
  [
    14,
    'what waits for the consent is stored',
    'client.ts',
    "{ ...state, deviceId: '', touches: [], users: [] }",
    'state',
  ],
  [
    14,
    'what waits for the consent is dropped',
    'client.ts',
    '        state.enabled = true;\n',
    '        state.touches = [];\n        state.enabled = true;\n',
  ],
  [
    14,
    'a consent sends nothing',
    'client.ts',
    '        save(state);\n        flush();',
    '        save(state);',
  ],
  [
    14,
    'a reset is a refusal while the consent is undecided',
    'client.ts',
    'replaceState(enabled, true, isUndecided);',
    'replaceState(enabled, true);',
  ],
  [
    14,
    'an undecided consent forgets the first open',
    'client.ts',
    'state.firstOpenAt = stored.firstOpenAt;',
    ';',
  ],
  [
    14,
    'what is not false is a consent',
    'client.ts',
    'const enabled = given === true;',
    'const enabled = given !== false;',
  ],
  [
    14,
    'what is truthy is a consent',
    'client.ts',
    'const enabled = given === true;',
    'const enabled = Boolean(given);',
  ],
  [
    14,
    'an opt-out before the start is counted',
    'react-native/src/tributary.ts',
    '      else consent = [run];',
    '      else await call(run, undefined);',
  ],
  [
    13,
    'a reset before the start is counted',
    'react-native/src/tributary.ts',
    '      if (!opening) calls = [];\n',
    '',
  ],
  [
    13,
    'nothing is deleted after a write failed',
    'client.ts',
    'if (!isStorageUsable && !isReplaced) return;',
    'if (!isStorageUsable) return;',
  ],
  [
    14,
    'an opt-out that could not be stored is forgotten by the next start',
    'client.ts',
    'if (state.enabled || isReplaced) save(state);',
    'if (state.enabled) save(state);',
  ],
  [
    14,
    'an undecided consent overwrites a state that cannot be read',
    'client.ts',
    'state.isUndecided = true;',
    'state.isUndecided = isReplaced = true;',
  ],
  [1, 'a write may take for ever', 'client.ts', 'inTime(platform, write())', 'write()'],
  [1, 'an affiliate that is no text is stored', 'client.ts', "typeof affiliateId === 'string' && ", ''],
  [15, 'the SDK is not named', 'client.ts', '      sdk: platform.sdk,\n', ''],
  [15, 'an organic install is an error', 'client.ts', '      acceptUnattributed: true,\n', ''],
  [9, 'a code that is no text is a code', 'send.ts', "typeof code === 'string' && code ?", 'code ?'],
  [
    9,
    'an attribution that is no text is one',
    'send.ts',
    "(typeof attributionId === 'string' ||",
    "(typeof attributionId !== 'undefined' ||",
  ],
  [
    9,
    'what follows a refusal waits',
    'client.ts',
    '    save(state);\n    return true;\n  }\n\n  function applyToTouch',
    '    save(state);\n    return answer.outcome === OK;\n  }\n\n  function applyToTouch',
  ],
  [
    9,
    'a reset tries a wrong key again',
    'client.ts',
    '    failures = 0;\n    latest =',
    '    failures = 0;\n    halt.isMisconfigured = false;\n    latest =',
  ],
  [
    10,
    'a Retry-After beside an answer delays what follows',
    'client.ts',
    '    failures = 0;\n    const isAttributed',
    '    failures = 0;\n    state.notBefore = platform.now() + answer.afterMs;\n    const isAttributed',
  ],
  [
    10,
    'the foreground ends a Retry-After',
    'client.ts',
    '      } else flush();\n    },',
    '      } else {\n        halt.notBefore = latest.notBefore = 0;\n        flush();\n      }\n    },',
  ],
  [
    10,
    'a Retry-After grows with the failures',
    'client.ts',
    'answer.afterMs * factor',
    'answer.afterMs * factor * failures',
  ],
  [10, 'a reset keeps the count of failures', 'client.ts', '    failures = 0;\n    latest =', '    latest ='],
  [
    8,
    'a user with another signature is not sent again',
    'client.ts',
    'const isNew = !known || known.signature !== signature;',
    'const isNew = !known;',
  ],
  [
    8,
    'the second call for a user does not wait',
    'client.ts',
    '      deliver(isNew);\n',
    '      deliver(isNew);\n      if (!isNew) return false;\n',
  ],
  [
    7,
    'the second call with a code does not wait',
    'client.ts',
    '    deliver(addTouch(state, { ...referral, at: platform.now() }));',
    '    if (!addTouch(state, { ...referral, at: platform.now() })) return false;\n    deliver(true);',
  ],
  [
    7,
    'a user who failed is sent before a new touch',
    'client.ts',
    '    if (touch) return { touch };',
    '    if (user && failures > 0) return { user };\n    if (touch) return { touch };',
  ],
  [
    6,
    'a deferred match that failed is given up',
    'client.ts',
    '      failedAt = platform.now();',
    '      failedAt = platform.now();\n      if (!touch && !user) deferredMatch = false;',
  ],
  [
    12,
    'a code that was deleted is a success',
    'client.ts',
    '(answerIn(current) ?? false)',
    '(answerIn(current) ?? true)',
  ],
  [
    13,
    'a reset keeps the users',
    'client.ts',
    '    latest = emptyState(enabled, isDeferredAnswered, isUndecided);',
    '    latest = { ...emptyState(enabled, isDeferredAnswered, isUndecided), users: latest.users };',
  ],
  [2, 'two apps share a state', 'options.ts', 'app ? `', "app === '' ? `"],
  [
    1,
    'the state has the name of the key',
    'client.ts',
    '${host}#test` : host',
    '${host}#test` : host + options.apiKey',
  ],
  [
    14,
    'a refusal ends with the name of an app',
    'client.ts',
    'isFresh && isRefused(parseState',
    'false && isRefused(parseState',
  ],
  [
    14,
    'an undecided consent of another app is a refusal',
    'client.ts',
    'isFresh && isRefused(parseState(unnamedText, owner) ?? latest)',
    '(parseState(unnamedText ?? null, owner) ?? latest).enabled === false',
  ],
  [
    0,
    'the debug state has the whole device id',
    'debug.ts',
    'deviceId.slice(0, DEVICE_ID_LENGTH)',
    'deviceId',
  ],
  [
    0,
    'the debug state has the device id without a consent',
    'debug.ts',
    'enabled ? deviceId.slice(0, DEVICE_ID_LENGTH) : null',
    'deviceId.slice(0, DEVICE_ID_LENGTH)',
  ],
  [
    0,
    'the debug state has any code of an answer',
    'debug.ts',
    "typeof code === 'string' && PUBLIC_CODE.test(code)",
    "typeof code === 'string'",
  ],
  [
    0,
    'the debug state has a code that is no text',
    'debug.ts',
    "typeof code === 'string' && PUBLIC_CODE.test(code)",
    'PUBLIC_CODE.test(code as string) || typeof code === "number"',
  ],
  [
    0,
    'the debug state has the error of a request',
    'debug.ts',
    "typeof status === 'number' ? status : null",
    'status as number',
  ],
  [
    0,
    'the debug state knows undecided as refused',
    'debug.ts',
    "isUndecided ? 'undecided' : 'refused'",
    "'refused'",
  ],
  [
    0,
    'the debug state is unknown without anything queued',
    'debug.ts',
    "isWaiting ? 'unknown' : 'none'",
    "'unknown'",
  ],
  [
    0,
    'the debug state has bound users in the queue',
    'debug.ts',
    "status === 'pending'",
    'status !== undefined',
  ],
  [0, 'the debug state rounds ages up', 'debug.ts', 'Math.floor(Math.max', 'Math.ceil(Math.max'],
  [
    0,
    'the debug state rounds the next try down',
    'debug.ts',
    'Math.ceil((nextTryAt',
    'Math.floor((nextTryAt',
  ],
  [
    0,
    'the debug state has a next try in the past',
    'debug.ts',
    'Math.max(0, Math.ceil(',
    'Math.max(-1000, Math.ceil(',
  ],
  [0, 'the debug state calls a token a code', 'debug.ts', "touch.claimToken ? 'token' : 'code'", "'code'"],
  [
    0,
    'the debug state has the deferred match after the users',
    'debug.ts',
    '...(isDeferredWanted && (enabled || isUndecided) ?',
    '...(false ?',
  ],
  [
    0,
    'the debug state has a deferred match after a refusal',
    'debug.ts',
    'isDeferredWanted && (enabled || isUndecided) ?',
    'isDeferredWanted !== undefined ?',
  ],
  [
    0,
    'the debug state plans a try while a request is under way',
    'client.ts',
    'inFlight || !(cancelRetry || wake)',
    'false',
  ],
  [0, 'the debug state has nine answers', 'client.ts', 'MAX_ANSWERS = 10', 'MAX_ANSWERS = 9'],
  [0, 'the debug state has eleven answers', 'client.ts', 'MAX_ANSWERS = 10', 'MAX_ANSWERS = 11'],
  [
    0,
    'the debug state takes a failed storage for a good one',
    'client.ts',
    '      isStorageUsable,\n      answers,',
    '      true,\n      answers,',
  ],
];

/** How long a run may take, ms. Some mutants never end, which a test would notice, too. */
const PATIENCE_MS = 30_000;
/** How many times as long as the unbroken core a mutant may run. */
const PATIENCE = 5;

/** What the code of the React Native SDK sees of its runtime. See the driver. */
const APP_MODULES = {
  'react-native': `
    export const Platform = { OS: 'ios' };
    export const Linking = { getInitialURL: async () => tributaryApp.url, addEventListener: () => {} };
    export const AppState = { addEventListener: (_, run) => { tributaryApp.onAppState = run; } };`,
  '@react-native-async-storage/async-storage': 'export default {};',
  './platform.ts':
    'export const platform = new Proxy({}, { get: (_, name) => tributaryApp.platform[name] });',
};

/**
 * Builds the Node SDK, and the code of the React Native SDK, with one text of the core (or of `file`, if it names a folder)
 * replaced, or with none.
 */
async function buildMutant(outfile, file, text, replacement) {
  const plugin = {
    name: 'mutant',
    setup: ({ onLoad }) =>
      onLoad({ filter: /\/src\/[a-z-]+\.ts$/ }, async ({ path }) => {
        const contents = await readFile(path, 'utf8');
        if (!path.endsWith(file?.includes('/') ? file : `core/src/${file}`))
          return { contents, loader: 'ts' };
        if (contents.split(text).length !== 2)
          throw new Error(`${file} must contain this text once: ${text}`);
        return { contents: contents.replace(text, () => replacement), loader: 'ts' };
      }),
  };
  const app = {
    name: 'app',
    setup: ({ onResolve, onLoad }) => {
      const importer = /react-native\/src\/[a-z]+\.ts$/;
      onResolve({ filter: /./ }, (found) =>
        importer.test(found.importer) && found.path in APP_MODULES
          ? { path: found.path, namespace: 'app' }
          : undefined,
      );
      onLoad({ filter: /./, namespace: 'app' }, ({ path }) => ({ contents: APP_MODULES[path] }));
    },
  };
  for (const [entry, to, plugins] of [
    ['node/src/index.ts', outfile, [plugin]],
    ['react-native/src/tributary.ts', appOf(outfile), [app, plugin]],
  ])
    await build({
      entryPoints: [resolve(JS, entry)],
      outfile: to,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      define: { VERSION: '"0.1.0"', HOST: '""', IS_SHARED: 'false' },
      plugins,
      logLevel: 'silent',
    });
}

/** Returns the file with the code of the React Native SDK that belongs to a file with that of the Node SDK. */
const appOf = (module) => module.replace(/\.mjs$/, '.app.mjs');

/** Plays the scenarios in a worker, those of the rule first. Returns what went wrong, or null if every scenario passes. */
async function failureOf(module, rule, patienceMs) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { module, rule } });
  const failure = await new Promise((resolve) => {
    const timer = setTimeout(() => resolve(`no end after ${patienceMs} ms`), patienceMs);
    worker.once('message', resolve);
    worker.once('error', (error) => resolve(String(error)));
    worker.once('exit', () => clearTimeout(timer));
  });
  await worker.terminate();
  return failure;
}

async function playAll({ module, rule }) {
  const { createTributary } = await import(module);
  const app = await import(appOf(module));
  const server = await startServer();
  // What the Node SDK can't play, such as scenarios with a start, the React Native SDK plays.
  const scenarios = readScenarios()
    .filter((scenario) => isPlayable(scenario, ABILITIES) || isPlayable(scenario, APP_ABILITIES))
    .toSorted((a, b) => Number(b.rules.includes(rule)) - Number(a.rules.includes(rule)));
  for (const scenario of scenarios) {
    const isApp = !isPlayable(scenario, ABILITIES);
    try {
      const driver = createDriver(isApp ? app.createTributary : createTributary, isApp);
      await play(scenario, { server, driver });
    } catch (error) {
      return `${scenario.name}: ${error.message}`;
    }
  }
  return null;
}

async function tryAll() {
  const folder = await mkdtemp(join(tmpdir(), 'tributary-mutants-'));
  const only = process.argv[2] ?? '';
  // A mutant is noticed only if the same scenarios pass without it.
  const original = join(folder, 'original.mjs');
  await buildMutant(original);
  const startedAt = Date.now();
  const failure = await failureOf(pathToFileURL(original).href, 0, 10 * PATIENCE_MS);
  if (failure !== null) {
    await rm(folder, { recursive: true, force: true });
    console.log(`A scenario fails without a mutant: ${failure}`);
    process.exit(1);
  }
  const patienceMs = Math.max(PATIENCE_MS, PATIENCE * (Date.now() - startedAt));
  const survivors = [];
  const tried = MUTANTS.filter(([, name]) => name.includes(only));
  for (const [index, [rule, name, file, text, replacement]] of tried.entries()) {
    const outfile = join(folder, `mutant-${index}.mjs`);
    await buildMutant(outfile, file, text, replacement);
    if ((await failureOf(pathToFileURL(outfile).href, rule, patienceMs)) === null)
      survivors.push(`rule ${rule}: ${name}`);
  }
  await rm(folder, { recursive: true, force: true });
  for (const survivor of survivors) console.log(`No scenario fails: ${survivor}`);
  console.log(`${tried.length - survivors.length} of ${tried.length} mutants fail a scenario.`);
  process.exit(survivors.length === 0 ? 0 : 1);
}

if (isMainThread) await tryAll();
else parentPort.postMessage(await playAll(workerData));
