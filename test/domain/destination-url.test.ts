import { describe, expect, test } from '@jest/globals';
import { isDestinationUrl } from '../../src/domain/destination-url.ts';

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
    ['a scheme alone', 'myapp:'],
    ['an address with a space', 'https://example.com/a b'],
    ['an address after a space', ' https://example.com'],
    ['a scheme with a line end', 'java\nscript:alert(1)'],
    ['an address with a NUL', 'https://example.com/\u0000'],
    ['an address with a DEL', 'https://example.com/\u007f'],
  ])('a link may not lead to %s', (_, text) => {
    expect(isDestinationUrl(text)).toBe(false);
  });
});
