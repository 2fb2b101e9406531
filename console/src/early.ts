/**
 * Asks for what a page of founders or creators shows first while its modules are still loading, which takes longer on a slow network. The
 * client (api/client.ts) takes the answers from here. This file is a script of its own, without imports, so that it runs first.
 */

/** The answers by their addresses. Each is taken once. */
export type EarlyAnswers = Map<string, Promise<Response>>;

declare global {
  var earlyAnswers: EarlyAnswers | undefined;
}

/** What a page of an app shows first, by its path, and the permission that each part needs. */
const READS_OF_PAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  overview: {
    overview: 'read',
    'diagnostics/unattributed/summary': 'read',
    'diagnostics/webhooks/summary': 'read',
    'webhook-endpoints': 'setup',
  },
  // The lists without filters, which the address would have.
  events: { events: 'read' },
  commissions: { commissions: 'read' },
};

/** The number beside the name of a page in the navigation, which every page has. */
const READ_OF_EVERY_PAGE = 'alerts?status=open&limit=100';

/** What the first page of a creator shows, besides what each has. */
const READS_OF_EARNINGS = ['creator/overview', 'creator/links?limit=25'];

const ID = /^[a-z]{3}_[0-9a-z]{26}$/;

const answers: EarlyAnswers = new Map();
globalThis.earlyAnswers = answers;

const consoleUrl = new URL(document.baseURI);
const path = location.pathname.slice(consoleUrl.pathname.length);

function ask(part: string): Promise<Response> {
  const { href } = new URL(`../${part}`, consoleUrl);
  const answer = fetch(href, { headers: { 'Tributary-Console': '1' } });
  // What takes the answer reports the failure.
  answer.catch(() => {});
  answers.set(href, answer);
  return answer;
}

/** Returns the session of a path of the API, or null without one. */
async function askForSession<S>(part: string): Promise<S | null> {
  const { session } = (await (await ask(part)).clone().json()) as { session: S | null };
  return session;
}

async function askForCreatorPage(): Promise<void> {
  if ((await askForSession('creator/session')) === null) return;
  void ask('creator');
  if (path === 'creator/') for (const part of READS_OF_EARNINGS) void ask(part);
}

async function askForFounderPage(): Promise<void> {
  const session = await askForSession<{ permissions: readonly string[] }>('session');
  if (session === null) return;
  const canRead = session.permissions.includes('read');
  const apps = ask('apps');
  if (path === '' && canRead) await askForStart(apps);
  const [first, appId = '', page = '', ...rest] = path.split('/');
  if (first !== 'apps' || !ID.test(appId) || !canRead) return;
  void ask(`apps/${appId}/${READ_OF_EVERY_PAGE}`);
  if (rest.length > 0 || location.search !== '') return;
  for (const [part, permission] of Object.entries(READS_OF_PAGES[page] ?? {}))
    if (session.permissions.includes(permission)) void ask(`apps/${appId}/${part}`);
}

/** Asks for what decides whether the first app opens with its set-up or its overview. */
async function askForStart(apps: Promise<Response>): Promise<void> {
  const [first] = (await (await apps).clone().json()) as readonly { id: string }[];
  if (first !== undefined) void ask(`apps/${first.id}/overview`);
}

/** Asks for nothing that the page does not read: an answer that nobody reads keeps its connection. */
async function askForPage(): Promise<void> {
  if (path.startsWith('creator/as/')) void ask('session');
  else await (/^creator(\/|$)/.test(path) ? askForCreatorPage() : askForFounderPage());
}

/** Asks for the files of the page of the address, which vite.config.ts has written into the document by the paths of pages. */
function preloadPage(): void {
  const text = document.querySelector('#page-files')?.textContent.trim() ?? '';
  // Only a build has names for them.
  if (!text.startsWith('{')) return;
  const files = JSON.parse(text) as Readonly<Record<string, readonly string[]>>;
  const [first, , ...page] = path.split('/');
  if (first !== 'apps') return;
  for (const file of files[page.map((part) => (ID.test(part) ? ':' : part)).join('/')] ?? []) {
    const link = document.createElement('link');
    if (file.endsWith('.css')) [link.rel, link.as] = ['preload', 'style'];
    else link.rel = 'modulepreload';
    link.crossOrigin = '';
    // The head of the page is drawn without them.
    link.fetchPriority = 'low';
    link.href = new URL(`assets/${file}`, consoleUrl).href;
    document.head.append(link);
  }
}

// A link to sign in with may lead to another session than the present one.
if (location.hash === '') void askForPage().catch(() => {});
// After the session, which decides what is shown at all.
preloadPage();
