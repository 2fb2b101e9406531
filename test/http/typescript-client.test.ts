import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { openApiDocument } from '../../src/http/openapi.ts';
import { routeGroups } from '../../src/http/routes.ts';

// Generates a TypeScript client from the OpenAPI document and compiles it in strict mode together with programs that use it.

const run = promisify(execFile);
const program = (name: string) => path.join(projectRoot, 'node_modules/.bin', name);

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2023', 'dom'],
    types: [],
  },
};

const USES_NAMED_TYPES = `
import { Api } from './client.js';
import type {
  Affiliate, App, Commission, CommissionPage, CreatedAffiliate, Delivery, Explanation, ListedLink, NewAffiliate, Payout,
} from './client.js';

const api = new Api<string>({
  baseUrl: 'https://api.example.test',
  securityWorker: (key) => ({ headers: { authorization: \`Bearer \${key}\` } }),
});

export async function createAffiliate(appId: string): Promise<Affiliate> {
  const wanted: NewAffiliate = { name: 'Ann', email: null, externalId: 'crm-1' };
  const created: CreatedAffiliate = await api.apps.createAffiliate(appId, wanted);
  for (const warning of created.warnings ?? []) console.warn(warning.code satisfies 'repeated_email');
  return created;
}

export async function commissionsOf(appId: string, payoutId: string): Promise<Commission[]> {
  const rows: Commission[] = [];
  let cursor: string | null = null;
  do {
    const page: CommissionPage = await api.apps.listCommissions(appId, {
      payoutId,
      kind: 'earning',
      from: '2026-05-01T00:00:00Z',
      ...(cursor === null ? {} : { cursor }),
    });
    rows.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return rows;
}

export async function firstPayout(appId: string): Promise<Payout | undefined> {
  return (await api.apps.listPayouts(appId, { limit: 1 })).items[0];
}

export const totals = (links: readonly ListedLink[]): number => links.reduce((sum, { clicks }) => sum + clicks, 0);
export const isStuck = (delivery: Delivery): boolean => delivery.processingStatus === 'processing';
export const hold = (app: App): number => app.holdPeriodDays;

export async function failedSlugs(appId: string, affiliateId: string): Promise<number[]> {
  const { failed } = await api.apps.createLinks(appId, { rows: [{ affiliateId, destinationUrl: 'https://example.com' }] });
  return failed.filter(({ code }) => code === 'slug_taken').map(({ index }) => index);
}

export function whoDecided({ steps }: Explanation): string | undefined {
  for (const step of steps) {
    // The step decides which decisions and facts there are.
    if (step.step === 'verify' && step.decision === 'rejected') return step.facts.provider;
    if (step.step === 'attribute' && step.decision === 'attributed')
      return step.facts.users?.find((user) => user.attribution?.decided)?.customerUserId;
  }
  return undefined;
}
`;

/** Each line that is marked with an error does not compile. */
const WRONG = `
import { Api } from './client.js';
import type { Affiliate, Commission, Delivery, Explanation, Problem, WebhookSecret } from './client.js';

const api = new Api();
export const noName = () => api.apps.createAffiliate('app', { email: 'ann@example.com' }); // TS2741
export const status = (affiliate: Affiliate) => affiliate.status === 'deleted'; // TS2367
export const cents = (row: Commission): string => row.amountCents; // TS2322
export const mayBeNull = (row: Commission): string => row.payoutId; // TS2322
export const source = () => api.apps.listCommissions('app', { source: 'paypal' }); // TS2322
export const provider = () => api.apps.putWebhookSecret('app', 'paypal', {}); // TS2345
export const stuck = (delivery: Delivery) => delivery.processingStatus === 'stuck'; // TS2367
export const ofProvider = (secret: WebhookSecret) => secret.provider === 'paypal'; // TS2367
export const mayLackEmail = (affiliate: Affiliate): string => affiliate.email; // TS2322
export const code = (problem: Problem) => problem.code === 'gone'; // TS2367
export const decision = ({ steps }: Explanation) => steps.some((step) => step.decision === 'maybe'); // TS2367
export const refused = async () => (await api.apps.createLinks('app', { rows: [] })).failed[0]?.code === 'gone'; // TS2367
`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-client-'));
  await mkdir(path.join(folder, 'checked'));
  const document = path.join(folder, 'openapi.json');
  await writeFile(document, JSON.stringify(openApiDocument(routeGroups, 'https://api.example.test')));
  const options = `--path ${document} --output ${folder} --name client.ts --unwrap-response-data --silent`;
  await run(program('swagger-typescript-api'), ['generate', ...options.split(' ')]);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Compiles the generated client and a program. Returns the errors as `file:line code`. */
async function compile(name: string, text: string): Promise<string[]> {
  const client = await readFile(path.join(folder, 'client.ts'), 'utf8');
  expect(client).toContain('// @ts-nocheck');
  // The generator disables the type check of its own code, which is what this test is about.
  await writeFile(path.join(folder, 'checked/client.ts'), client.replace('// @ts-nocheck', ''));
  await writeFile(path.join(folder, 'checked', name), text);
  const config = path.join(folder, 'checked', `${name}.json`);
  await writeFile(config, JSON.stringify({ ...TSCONFIG, files: ['client.ts', name] }));
  const { stdout } = await run(program('tsc'), ['--pretty', 'false', '-p', config]).catch(
    (error: { stdout: string }) => error,
  );
  return [...stdout.matchAll(/^(?:.*\/)?([\w.-]+)\((\d+),\d+\): error (TS\d+)/gm)].map(
    ([, file, line, code]) => `${file}:${line} ${code}`,
  );
}

// @promise openapi-typescript-client
test('a client generated from the OpenAPI document has named types and compiles in strict mode', async () => {
  expect(await compile('uses-named-types.ts', USES_NAMED_TYPES)).toEqual([]);
});

// @promise openapi-typescript-client
test('a program that uses the generated types wrongly does not compile', async () => {
  const expected = WRONG.split('\n').flatMap((line, index) =>
    [...line.matchAll(/\/\/ (TS\d+)$/g)].map(([, code]) => `wrong.ts:${index + 1} ${code}`),
  );
  expect(expected).toHaveLength(12);
  expect(await compile('wrong.ts', WRONG)).toEqual(expected);
});
