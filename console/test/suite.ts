import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { generateAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import type { AccountId, AppId } from '../../src/domain/ids.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { startTestService } from '../../test/support/service.ts';
import type { TestService, TestServiceOptions } from '../../test/support/service.ts';
import { openBrowser } from '../../tools/open-browser.ts';
import { hasBrowser, openPage } from './browser.ts';
import type { GuardedPage } from './browser.ts';

/** A founder with an app, and nothing in it. */
export interface NewFounder {
  readonly accountId: AccountId;
  readonly appId: AppId;
  /** A key of all permissions, with the label "Ann". */
  readonly key: string;
}

/** What a suite of tests in a browser has. */
export interface BrowserSuite {
  /** Has its fields from the first `beforeAll` on. */
  readonly service: TestService;
  /** Opens a page, by default of the service. It is closed after the test. */
  readonly newPage: (options?: BrowserContextOptions, url?: string) => Promise<GuardedPage>;
  /** Returns an empty page of a browser that is signed in with an account key. */
  readonly signedIn: (key: string, options?: BrowserContextOptions) => Promise<GuardedPage>;
  /** Posts to the API with a key and returns the body of the response. Throws for an error. */
  readonly post: <T>(at: string, key: string, body?: object) => Promise<T>;
  readonly newFounder: () => Promise<NewFounder>;
}

type DescribeInBrowser = (title: string, define: (suite: BrowserSuite) => void) => void;

/** Defines a suite as `describeInBrowser` does, with options of the service and arguments of the browser. */
export const describeInBrowserWith =
  ({ args, ...options }: TestServiceOptions & { readonly args?: readonly string[] }): DescribeInBrowser =>
  (title, define) => {
    const service = {} as TestService;
    const open: GuardedPage[] = [];
    let browser: Browser;

    const newPage = async (page: BrowserContextOptions = {}, url = service.url) => {
      const guarded = await openPage(browser, url, page);
      open.push(guarded);
      return guarded;
    };
    const signedIn = async (key: string, page?: BrowserContextOptions) => {
      const guarded = await newPage(page);
      // Without the page for it, which tests of its own sign in with.
      const response = await guarded.page.request.post(`${service.url}/session`, { data: { key } });
      if (!response.ok()) throw new Error(`POST /session: ${response.status()} ${await response.text()}`);
      return guarded;
    };
    const post = async <T>(at: string, key: string, body: object = {}): Promise<T> => {
      const response = await fetch(service.url + at, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`POST ${at}: ${response.status} ${await response.text()}`);
      return (await response.json()) as T;
    };
    const newFounder = async () => {
      const { id: accountId } = await createAccount(service.sql, 'Lantern Ltd');
      const key = (await generateAccountKey(service.sql, accountId, PERMISSIONS, 'Ann'))?.key ?? '';
      const app = await post<{ id: AppId }>('/apps', key, { name: 'Lantern Notes' });
      return { accountId, appId: app.id, key };
    };

    (hasBrowser() ? describe : describe.skip)(title, () => {
      beforeAll(async () => {
        Object.assign(service, await startTestService(options));
        browser = await openBrowser(args);
      });
      afterEach(async () => {
        await Promise.all(open.splice(0).map(async (guarded) => await guarded.close()));
      });
      afterAll(async () => {
        await browser.close();
        await service.close();
      });
      define({ service, newPage, signedIn, post, newFounder });
    });
  };

/** Defines a suite with a service and a browser of its own. It is left out where no browser is installed. */
export const describeInBrowser = describeInBrowserWith({});
