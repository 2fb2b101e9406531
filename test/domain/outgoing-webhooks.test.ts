import { describe, expect, test } from '@jest/globals';
import { RETRY_DELAYS_MS, retryDelayMs, webhookUrlProblem } from '../../src/domain/outgoing-webhooks.ts';
import { HOUR_MS } from '../../src/domain/time.ts';

const NO_WISH = { retryAfterMs: null, random: 0 };

describe('the attempts at a message', () => {
  // @promise webhooks-out-retries
  test('ten attempts follow each other within three to four days, the first within seconds', () => {
    expect(RETRY_DELAYS_MS).toHaveLength(9);
    expect(retryDelayMs(1, NO_WISH)).toBe(5_000);
    const total = RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0);
    expect(total / HOUR_MS).toBeGreaterThan(72);
    expect(total / HOUR_MS).toBeLessThan(96);
    expect(retryDelayMs(10, NO_WISH)).toBeNull();
  });

  test('waits grow, and chance adds at most a tenth', () => {
    const waits = RETRY_DELAYS_MS.map((_, index) => retryDelayMs(index + 1, NO_WISH) ?? 0);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(retryDelayMs(3, { retryAfterMs: null, random: 1 })).toBe(33 * 60_000);
  });

  test.each([
    ['a longer wait that the endpoint asks for', 60_000, 60_000],
    ['not a shorter one', 1_000, 5_000],
    ['at most a day', 90 * 86_400_000, 86_400_000],
  ])('the next attempt respects %s', (_, retryAfterMs, expected) => {
    expect(retryDelayMs(1, { retryAfterMs, random: 0 })).toBe(expected);
  });
});

describe('the URL of an endpoint', () => {
  // @promise webhooks-out-https
  test.each([
    ['http://example.com/hook', 'Must begin with https://.'],
    ['ftp://example.com/hook', 'Must begin with https://.'],
    ['https://user@example.com/', 'Must have no user name and no password.'],
    ['https://:secret@example.com/', 'Must have no user name and no password.'],
    ['https://example.com/#part', 'Must have no part after #.'],
    ['example.com', 'Must be an address such as https://example.com/webhooks.'],
    ['https://', 'Must be an address such as https://example.com/webhooks.'],
    ['https:///example.com/', 'Must be an address such as https://example.com/webhooks.'],
    ['https:example.com', 'Must be an address such as https://example.com/webhooks.'],
    ['https:/example.com', 'Must be an address such as https://example.com/webhooks.'],
    [String.raw`https:\\example.com`, 'Must be an address such as https://example.com/webhooks.'],
    [' https://example.com/', 'Must be an address such as https://example.com/webhooks.'],
    ['https://exam\tple.com/', 'Must be an address such as https://example.com/webhooks.'],
  ])('%s is refused', (url, problem) => {
    expect(webhookUrlProblem(url, 'public')).toBe(problem);
  });

  // @promise webhooks-out-public-addresses
  test.each([
    'https://127.0.0.1/hook',
    'https://10.0.0.1:8443/hook',
    'https://169.254.169.254/latest/meta-data',
    'https://192.168.1.1./hook',
    'https://0x7f.1/hook',
    'https://0177.0.0.1/hook',
    'https://2130706433/hook',
    'https://%31%32%37.0.0.1/hook',
    'https://１２７.0.0.1/hook',
    'https://[::1]/hook',
    'https://[::]/hook',
    'https://[fe80::1]/hook',
    'https://[fd12:3456::1]:8443/hook',
    'https://[::ffff:10.0.0.1]/hook',
    'https://[::ffff:a9fe:a9fe]/hook',
    'https://[64:ff9b::7f00:1]/hook',
    'https://[0:0:0:0:0:0:0:1]/hook',
  ])('%s is refused, as its host is a private or reserved address', (url) => {
    expect(webhookUrlProblem(url, 'public')).toMatch(/^Must have a public host/);
    expect(webhookUrlProblem(url, 'any')).toBeNull();
  });

  test.each([
    'https://8.8.8.8/hook',
    'https://[2606:4700::1111]/hook',
    'https://localhost.example.com/',
    'https://127.0.0.1.example.com/',
    'https://dead.beef/',
  ])('%s is accepted: a public address, or a name, which is checked at each attempt', (url) => {
    expect(webhookUrlProblem(url, 'public')).toBeNull();
  });

  test('an address with https is accepted, and one with http only where private receivers are allowed', () => {
    expect(webhookUrlProblem('https://example.com:8443/hook?token=1', 'public')).toBeNull();
    expect(webhookUrlProblem('http://127.0.0.1:8080/hook', 'any')).toBeNull();
    expect(webhookUrlProblem('file:///etc/passwd', 'any')).toBe('Must begin with https://.');
  });
});
