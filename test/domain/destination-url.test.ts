import { describe, expect, test } from '@jest/globals';
import {
  isDeclarableScheme,
  isDeclaredDestination,
  isDestinationUrl,
} from '../../src/domain/destination-url.ts';

describe('accepted destinations of links', () => {
  test.each([
    ['https://example.com'],
    ['http://example.com/a?b#c'],
    ['HTTPS://EXAMPLE.com'],
    ['https://müller.example/ü'],
    ['myapp://open'],
    ['myapp:open'],
    ['com.example.app:/open?x=1'],
    ['market://details?id=com.example'],
    ['mailto:hello@example.com'],
  ])('a link may lead to %s', (text) => {
    expect(isDestinationUrl(text)).toBe(true);
  });
});

describe('refused destinations of links', () => {
  // @promise destination-safe
  test.each([
    ['a script of the browser', 'javascript:alert(1)'],
    ['a script in upper case', 'JavaScript:alert(1)'],
    ['a script in another language', 'vbscript:msgbox(1)'],
    ['a page inside the URL', 'data:text/html,hello'],
    ['an object of the browser', 'blob:https://example.com/1'],
    ['a local file', 'file:///etc/hosts'],
    ['a local file system', 'filesystem:https://example.com/temporary/a'],
    ['a page of the browser', 'about:blank'],
    ['the source of a page', 'view-source:https://example.com'],
    ['nowhere', ''],
    ['a path', '/get'],
    ['a host without a scheme', 'example.com/get'],
    ['a web address without a host', 'https://'],
    ['a web address with three slashes', 'https:///x'],
    ['a web address with one slash', 'https:/example.com'],
    ['a web address without slashes', 'http:example.com'],
    ['a web address with backslashes', String.raw`https:\\example.com`],
    ['a scheme alone', 'myapp:'],
    ['an address with a space', 'https://example.com/a b'],
    ['an address after a space', ' https://example.com'],
    ['a scheme with a line end', 'java\nscript:alert(1)'],
    ['a web address with a user name', 'https://bank.example@evil.example/'],
    ['a web address with a password', 'https://:secret@example.com'],
    ['a web address with an empty user name', 'https://@example.com'],
    ['a user name without slashes before it', 'https:bank.example@evil.example'],
    ['a user name after one slash', 'https:/bank.example@evil.example'],
    ['a password without slashes before it', 'https::secret@example.com'],
    ['a user name after backslashes', 'https:\\\\bank.example@evil.example'],
    ['an app with a user name', 'myapp://user@host'],
    ['a diagnostic tool of Windows', 'ms-msdt:/id'],
    ['a search of Windows', 'search-ms:query=x'],
    ['any other handler of Windows', 'ms-anything:x'],
    ['a handler of Windows in upper case', 'MS-Officecmd:x'],
    ['an intent of Android', 'intent://scan/#Intent;scheme=zxing;end'],
    ['an app of Android by its package', 'android-app://com.example/'],
    ['a shell', 'shell:startup'],
    ['a remote login', 'ssh://host'],
    ['a file share', 'smb://host/share'],
    ['the settings of macOS', 'x-apple.systempreferences:com.apple.preference'],
    ['a page of the browser itself', 'chrome://settings'],
    ['an address with a NUL', 'https://example.com/\u0000'],
    ['an address with a DEL', 'https://example.com/\u007f'],
  ])('a link may not lead to %s', (_, text) => {
    expect(isDestinationUrl(text)).toBe(false);
  });
});

describe('declared schemes', () => {
  // @promise destination-schemes
  test.each([
    ['myapp://open', true],
    ['MyApp://open', true],
    ['other://open', false],
    ['https://example.com', true],
    ['http://example.com', true],
    ['market://details?id=com.example', true],
    ['itms-apps://itunes.apple.com/app/id1', true],
    ['mailto:hello@example.com', false],
  ])('an app that declared only myapp may link to %s: %p', (text, expected) => {
    expect(isDeclaredDestination(text, ['myapp'])).toBe(expected);
  });

  test('an app that declared nothing may link to each accepted destination', () => {
    expect(isDeclaredDestination('other://open', null)).toBe(true);
  });

  test.each([
    ['myapp', true],
    ['com.example.app', true],
    ['a+b-c.1', true],
    ['MyApp', false],
    ['1app', false],
    ['my app', false],
    ['myapp:', false],
    ['javascript', false],
    ['intent', false],
    ['ms-word', false],
    ['https', false],
    ['', false],
  ])('an app can declare the scheme %j: %p', (scheme, expected) => {
    expect(isDeclarableScheme(scheme)).toBe(expected);
  });
});
