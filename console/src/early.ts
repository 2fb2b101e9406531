/**
 * Asks for what a page of founders shows first while its program is still loading, which takes longer on a slow network. The
 * client (api/client.ts) takes the answers from here. This file is a script of its own, without imports, so that it runs first.
 */

/** The answers by their addresses. Each is taken once. */
export type EarlyAnswers = Map<string, Promise<Response>>;

declare global {
  var earlyAnswers: EarlyAnswers | undefined;
}

/** What a page of an app shows first, by its path. */
const READS_OF_PAGES: Readonly<Record<string, readonly string[]>> = {
  overview: ['overview', 'diagnostics/unattributed/summary', 'diagnostics/webhooks/summary'],
};

const answers: EarlyAnswers = new Map();
globalThis.earlyAnswers = answers;

const consoleUrl = new URL(document.baseURI);

function ask(path: string): Promise<Response> {
  const { href } = new URL(`../${path}`, consoleUrl);
  const answer = fetch(href, { headers: { 'Tributary-Console': '1' } });
  // What takes the answer reports the failure.
  answer.catch(() => {});
  answers.set(href, answer);
  return answer;
}

async function askForPage(): Promise<void> {
  const { session } = (await (await ask('session')).clone().json()) as {
    session: { permissions: readonly string[] } | null;
  };
  if (session === null) return;
  void ask('apps');
  const [apps, appId = '', page = ''] = location.pathname.slice(consoleUrl.pathname.length).split('/');
  if (apps !== 'apps' || !session.permissions.includes('read')) return;
  for (const path of READS_OF_PAGES[page] ?? []) void ask(`apps/${appId}/${path}`);
}

// A link to sign in with may lead to another session than the present one.
if (location.hash === '') void askForPage().catch(() => {});
