// The React components: rendered on a server, and hydrated in a real browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { TributaryProvider, useAttribution } from '@tributary/web/react';
import { startServer } from '../../../conformance/server.mjs';
import { startBrowser, startSite } from './browser.mjs';

const Affiliate = () => createElement('output', null, useAttribution().affiliateId ?? 'none');
const App = (props) => createElement(TributaryProvider, props, createElement(Affiliate));
const rendered = renderToString(createElement(App, { apiKey: 'pk_live_test', userId: 'user-1' }));

let server;
let site;
let browser;
before(async () => {
  server = await startServer();
  const bundle = async (contents, loader) => {
    const { outputFiles } = await build({
      stdin: { contents, loader, resolveDir: fileURLToPath(new URL('../', import.meta.url)) },
      ...{ bundle: true, write: false, format: 'iife', logLevel: 'silent', jsx: 'automatic' },
      // The paths of this repository's tsconfig.json would lead to the sources.
      tsconfigRaw: {},
      define: { 'process.env.NODE_ENV': '"development"' },
    });
    return outputFiles[0].text.replaceAll('</script', '<\\/script');
  };
  const script = await bundle(
    `
        import { createElement, StrictMode } from 'react';
        import { hydrateRoot } from 'react-dom/client';
        import { attributedAffiliateId } from '@tributary/web';
        import { TributaryProvider, useAttribution } from '@tributary/web/react';
        const Affiliate = ${Affiliate};
        const App = ${App};
        window.learned = [];
        const render = (userId) => createElement(StrictMode, null, createElement(App, {
          apiKey: 'pk_live_test', apiBaseUrl: '${server.url}', userId,
          onAttribution: (id) => window.learned.push([id, userId]),
        }));
        const root = hydrateRoot(document.querySelector('main'), render(null));
        window.signIn = (userId) => root.render(render(userId));
        window.direct = attributedAffiliateId;`,
    'js',
  );
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const [, snippet] = /## React and Next\.js[\s\S]*?```tsx\n([\s\S]*?)```/.exec(readme);
  const key = 'apiKey="pk_live_…"';
  assert.ok(snippet.includes(key));
  const example = await bundle(
    `${snippet.replace(key, `apiKey="pk_live_test" apiBaseUrl="${server.url}"`)}
    import { createRoot } from 'react-dom/client';
    const root = createRoot(document.querySelector('main'));
    const render = (userId: string | null) => root.render(<Shop userId={userId}><Greeting /></Shop>);
    Object.assign(window, { signIn: render });
    render(null);`,
    'tsx',
  );
  site = await startSite(({ pathname }) =>
    pathname === '/readme'
      ? `<!doctype html><main></main><script>${example}</script>`
      : `<!doctype html><main>${rendered}</main><script>${script}</script>`,
  );
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});

test('a server renders the children of the provider, and no affiliate', () => {
  assert.equal(rendered, '<output>none</output>');
});

test('a hydrated page shows the affiliate, binds the user who signs in later, and starts the SDK once', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const page = await browser.newPage();
  const problems = [];
  page.on('console', (line) => line.type() === 'error' && problems.push(line.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(`${site.url}/?via=spring`);
  await page.getByText('aff_1').waitFor();
  assert.equal(await page.evaluate(() => window.direct()), 'aff_1');
  assert.deepEqual(await page.evaluate(() => window.learned), [['aff_1', null]]);
  const answered = page.waitForResponse((response) => response.url().endsWith('/sdk/identify'));
  await page.evaluate(() => window.signIn('user-1'));
  await answered;
  const sent = server.state().requests.map(({ path, body }) => [path, body.customerUserId]);
  assert.deepEqual(
    sent.map(([path, user]) => [path.split('/').at(-1), user]),
    [
      ['install', undefined],
      ['identify', 'user-1'],
    ],
  );
  assert.deepEqual(problems, []);
});

test('the components of the README greet a visitor of a link, and bind the user', async () => {
  server.load([
    { path: 'install', answer: 'won' },
    { path: 'identify', answer: 'bound' },
  ]);
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${site.url}/readme?via=spring`);
  await page.getByText('Your friend sent you here.').waitFor();
  const answered = page.waitForResponse((response) => response.url().endsWith('/sdk/identify'));
  await page.evaluate(() => window.signIn('user-1'));
  await answered;
});

test('the files for import and require begin with the directive of client components', async () => {
  for (const file of ['react.js', 'react.cjs']) {
    const text = await readFile(new URL(`../dist/${file}`, import.meta.url), 'utf8');
    assert.match(text, /^("use strict";\n)?"use client";/);
    assert.match(text, /["']@tributary\/web["']/);
  }
});

test('the files of Next.js in the README are those of the example', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const files = [...readme.matchAll(/`(app\/[\w./-]+)`:\n\n```jsx\n([\s\S]*?)```/g)];
  assert.deepEqual(
    files.map(([, name]) => name),
    ['app/layout.jsx', 'app/consent.jsx'],
  );
  for (const [, name, content] of files) {
    const file = new URL(`../../../examples/nextjs/${name}`, import.meta.url);
    assert.equal(content, await readFile(file, 'utf8'), name);
  }
});
