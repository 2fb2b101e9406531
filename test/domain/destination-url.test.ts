import { describe, expect, test } from '@jest/globals';
import { isDestinationUrl } from '../../src/domain/destination-url.ts';

describe('a link may lead to', () => {
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
  ])('%s', (text) => {
    expect(isDestinationUrl(text)).toBe(true);
  });
});

describe('a link never leads to', () => {
  test.each([
    ['code that a browser runs', 'javascript:alert(1)'],
    ['the same in capitals', 'JavaScript:alert(1)'],
    ['code of another language', 'vbscript:msgbox(1)'],
    ['a page inside the address', 'data:text/html,hello'],
    ['an object of the browser', 'blob:https://example.com/1'],
    ["the reader's disk", 'file:///etc/hosts'],
    ["the reader's disk by another name", 'filesystem:https://example.com/temporary/a'],
    ['a page of the browser', 'about:blank'],
    ['the source of a page', 'view-source:https://example.com'],
    ['nowhere', ''],
    ['a path', '/get'],
    ['a host without a scheme', 'example.com/get'],
    ['a web address without a host', 'https://'],
    ['a scheme alone', 'myapp:'],
    ['an address with a space', 'https://example.com/a b'],
    ['an address after a space', ' https://example.com'],
    ['a scheme that a line end cuts', 'java\nscript:alert(1)'],
    ['an address with a NUL', 'https://example.com/\u0000'],
    ['an address with a DEL', 'https://example.com/\u007f'],
  ])('%s', (_, text) => {
    expect(isDestinationUrl(text)).toBe(false);
  });
});
