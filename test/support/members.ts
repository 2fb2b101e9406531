import { createSecretBox } from '../../src/config/secret-box.ts';
import { mailSecretContext } from '../../src/db/email-secrets.ts';
import { createSignInLink } from '../../src/db/sessions.ts';
import type { AccountId, EmailId } from '../../src/domain/ids.ts';
import type { MemberRole } from '../../src/domain/members.ts';
import { TEST_KEY } from './api.ts';
import type { TestApi } from './api.ts';
import { cookieOf, OWN_PAGE } from './sessions.ts';

/** What a browser of a session sends. */
export type Browser = Readonly<Record<'sec-fetch-site' | 'cookie', string>>;

type Api = Pick<TestApi, 'call' | 'sql' | 'clock'>;

/** Opens a sign-in link in a new browser, or in that of a session. Returns its headers. */
export async function openLink(api: Api, token: string, browser: Partial<Browser> = {}): Promise<Browser> {
  const headers = { ...OWN_PAGE, ...browser };
  const answer = await api.call('POST', '/session', { body: { token }, headers });
  if (answer.status !== 200) throw new Error(`POST /session: ${answer.status} ${answer.text}`);
  const cookie = cookieOf(answer.headers);
  return { ...OWN_PAGE, cookie: cookie === '' ? (browser.cookie ?? '') : cookie };
}

/** Signs in with a link of the operator, whose session manages the members. */
export async function signInManager(
  api: Api,
  { accountId }: { readonly accountId: string },
): Promise<Browser> {
  const options = { now: api.clock.now, validMs: 60_000 };
  return await openLink(api, await createSignInLink(api.sql, accountId as AccountId, options));
}

export interface TestMember {
  readonly id: string;
  readonly keyId: string;
  readonly email: string;
  readonly accountId: string;
}

let addresses = 0;

/** Invites a member. */
export async function newMember(
  api: Api,
  { accountId }: { readonly accountId: string },
  manager: Browser,
  role: MemberRole,
  fields: object = {},
): Promise<TestMember> {
  addresses += 1;
  const body = { email: `person${addresses}@example.com`, name: `Person ${addresses}`, role, ...fields };
  const path = `/accounts/${accountId}/members`;
  const answer = await api.call<TestMember>('POST', path, { body, headers: manager });
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
  return { ...answer.body, accountId };
}

/** Copies a link of a member. Returns its token. */
export async function copiedToken(
  api: Api,
  { accountId, id }: Pick<TestMember, 'accountId' | 'id'>,
  manager: Browser,
): Promise<string> {
  const path = `/accounts/${accountId}/members/${id}/sign-in-links`;
  const answer = await api.call<{ url: string }>('POST', path, { headers: manager });
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
  return answer.body.url.split('#token=')[1] ?? '';
}

/** Signs a member in with a copied link. */
export async function signInMember(
  api: Api,
  member: Pick<TestMember, 'accountId' | 'id'>,
  manager: Browser,
): Promise<Browser> {
  return await openLink(api, await copiedToken(api, member, manager));
}

/** Returns the tokens in the mails to a member that wait, the latest first. */
export async function mailedTokens(
  { sql }: Pick<TestApi, 'sql'>,
  { id }: Pick<TestMember, 'id'>,
  kind: 'member_invitation' | 'member_sign_in' = 'member_sign_in',
): Promise<string[]> {
  const mails = await sql<{ id: EmailId; ciphertext: Buffer; encryptionKeyId: string }>`
    select id, ciphertext, encryption_key_id from emails
     where member_id = ${id} and kind = ${kind} and ended_at is null order by created_at desc, id desc`;
  const box = createSecretBox([TEST_KEY]);
  return mails.map((mail) =>
    box.decrypt(Buffer.from(mail.ciphertext), mail.encryptionKeyId, mailSecretContext(mail.id)),
  );
}
