import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { routes } from '../../src/http/routes.ts';
import { newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { newMember, signInManager, signInMember } from '../support/members.ts';
import type { Browser, TestMember } from '../support/members.ts';
import { requestOf } from '../support/route-requests.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});

interface Answer {
  readonly code?: string;
  readonly items?: readonly { readonly id: string }[];
}

const call = async (method: string, path: string, headers: Browser, body?: object) =>
  await api.call<Answer>(method, path, { headers, ...(body === undefined ? {} : { body }) });
const patch = async ({ accountId, id }: TestMember, by: Browser, body: object) =>
  await call('PATCH', `/accounts/${accountId}/members/${id}`, by, body);
const statusOf = async (headers: Browser, path: string) => (await call('GET', path, headers)).status;

describe('a member who is limited to some apps', () => {
  let seen: TestApp;
  let hidden: TestApp;
  let by: Browser;
  let browser: Browser;
  let member: TestMember;

  beforeAll(async () => {
    seen = await newApp(api, undefined, { name: 'The app that is seen' });
    hidden = await newApp(api, seen, { name: 'The hidden app' });
    by = await signInManager(api, seen);
    member = await newMember(api, seen, by, 'admin', { appIds: [seen.appId] });
    browser = await signInMember(api, member, by);
  });

  // @promise member-apps
  test('gets the response for an unknown app on every route of another one', async () => {
    const unknown = hidden.appId.replace(/.{4}$/, '0000');
    const wrong: string[] = [];
    for (const route of routes.filter(({ path, auth }) => auth === 'account' && path.includes('/:appId'))) {
      const answers: string[] = [];
      for (const appId of [hidden.appId, unknown]) {
        const { path, body } = requestOf(route, ({ name, kind }) =>
          name === 'appId' ? appId : `${kind}_none`,
        );
        const { status, text } = await api.call(route.method, path, { headers: browser, body });
        answers.push(`${status} ${text.replace(/"requestId":"[^"]*"/, '').replaceAll(appId, 'APP')}`);
      }
      const isRefused = /^(404|403) /.test(answers[0] ?? '');
      if (!isRefused || answers[0] !== answers[1])
        wrong.push(`${route.method} ${route.path} ${answers.join(' ')}`);
    }
    expect(wrong).toEqual([]);
  });

  test('sees only these apps in the list, also page by page', async () => {
    for (const query of ['', '?limit=1']) {
      const { body } = await api.call<{ id: string }[]>('GET', `/apps${query}`, { headers: browser });
      expect(body.map(({ id }) => id)).toEqual([seen.appId]);
    }
  });

  test('sees in the audit only the changes of these apps, also with filters, and no name of another one', async () => {
    const creator = await api.call<{ id: string }>('POST', `/apps/${hidden.appId}/affiliates`, {
      key: seen.key,
      body: { name: 'Secret creator' },
    });
    const link = await api.call<{ id: string }>('POST', `/apps/${seen.appId}/affiliates`, {
      key: seen.key,
      // Anybody may enter the id of something that somebody else sees.
      body: { name: 'Open creator', externalId: creator.body.id },
    });
    expect([creator.status, link.status]).toEqual([201, 201]);
    const filters = [
      '',
      `?appId=${hidden.appId}`,
      '?objectKind=member',
      `?objectId=${creator.body.id}`,
      '?action=created',
    ];
    for (const query of filters) {
      const { text, body, status } = await call('GET', `/accounts/${seen.accountId}/audit${query}`, browser);
      expect(status).toBe(200);
      expect(text).not.toContain('Secret creator');
      expect(text).not.toContain('The hidden app');
      expect(text).not.toContain(member.id);
      if (query === '') expect(body.items?.length).toBeGreaterThan(1);
    }
  });

  test('creates no app, and neither sees nor creates keys of the account', async () => {
    const keys = `/accounts/${seen.accountId}/keys`;
    const refused = [
      await call('POST', '/apps', browser, { name: 'Another app' }),
      await call('GET', keys, browser),
      await call('POST', keys, browser, { label: 'Mine', permissions: ['read'] }),
    ];
    expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
      Array.from({ length: 3 }, () => [403, 'forbidden']),
    );
  });

  // @promise member-sessions
  test('sees and ends only the own sessions', async () => {
    const { body } = await api.call<{ sessions: unknown[] }>('GET', '/sessions', { headers: browser });
    expect(body.sessions).toHaveLength(1);
    await call('POST', '/sessions/end-all', browser);
    expect(await statusOf(by, '/apps')).toBe(200);
  });

  test('sees another app, and no longer the former one, from the next call after a change on', async () => {
    await patch(member, by, { appIds: [hidden.appId] });
    expect(await statusOf(browser, `/apps/${seen.appId}`)).toBe(404);
    expect(await statusOf(browser, `/apps/${hidden.appId}`)).toBe(200);
    await patch(member, by, { appIds: null });
    expect(await statusOf(browser, `/apps/${seen.appId}`)).toBe(200);
    await patch(member, by, { appIds: [seen.appId] });
  });
});
