import { expect, test } from '@jest/globals';
import { platformOf } from '../../src/domain/platform.ts';

// @promise platform-of-user-agent
test.each<[string, string, ReturnType<typeof platformOf>]>([
  [
    'Safari on an iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1',
    'ios',
  ],
  [
    'Safari on an iPad with mobile pages',
    'Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) AppleWebKit/605.1.15 Version/12.1 Mobile/15E148 Safari/604.1',
    'ios',
  ],
  [
    "Instagram's browser on an iPhone",
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Instagram 330.0',
    'ios',
  ],
  [
    'Chrome on Android',
    'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36',
    'android',
  ],
  [
    'Firefox on an Android tablet',
    'Mozilla/5.0 (Android 15; Tablet; rv:140.0) Gecko/140.0 Firefox/140.0',
    'android',
  ],
  [
    'Safari on an iPad with desktop pages, and on a Mac',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15',
    null,
  ],
  [
    'Chrome on Android with desktop pages',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36',
    null,
  ],
  [
    'Chrome on Windows',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36',
    null,
  ],
  [
    'a phone with Windows, which names all three',
    'Mozilla/5.0 (Mobile; Windows Phone 8.1; Android 4.0; ARM; Trident/7.0; IEMobile/11.0; NOKIA) like iPhone OS 7_0_3 Mac OS X AppleWebKit/537',
    null,
  ],
  ['a program with a word that only contains the name', 'Androidish/1.0 iPhoneSync/2', null],
  ['no User-Agent', '', null],
])(
  'the platform of %s is recognized by its User-Agent, and is null if it is neither',
  (_, userAgent, platform) => {
    expect(platformOf(userAgent)).toBe(platform);
  },
);
