import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { verifyRegistrationResponse } from '@simplewebauthn/server';
import { newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { attestAs, Authenticator, cbor, optionsOf } from '../support/authenticator.ts';
import type { Faults } from '../support/authenticator.ts';
import { createAuthority, createMakersCertificates } from '../support/certificates.ts';
import type { Certificate } from '../support/certificates.ts';
import { newMember, signInManager, signInMember } from '../support/members.ts';
import type { Browser } from '../support/members.ts';
import { PUBLIC_URL } from '../support/sessions.ts';

let api: TestApi;
let browser: Browser;
let folder: string;
let maker: Certificate;
/** The server of the addresses in certificates, and what it was asked for. */
let server: Server;
const asked: (string | undefined)[] = [];

beforeAll(async () => {
  api = await startTestApi();
  const app = await newApp(api);
  const manager = await signInManager(api, app);
  browser = await signInMember(api, await newMember(api, app, manager, 'analyst'), manager);
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
  maker = await createAuthority(folder, 'maker');
  server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
  await api.close();
});
beforeEach(() => {
  asked.length = 0;
});

const add = async (credential: object) =>
  await api.call('POST', '/session/passkeys', { headers: browser, body: { name: 'Phone', ...credential } });
const REFUSED = { status: 403, body: { code: 'invalid_passkey' } };

/** Makes a passkey for which a maker vouches whom nobody knows. Returns what a program sends of it, and the challenge. */
async function vouchedFor(format: string) {
  const authenticator = new Authenticator();
  const options = await optionsOf(api, 'options', browser);
  const certificates = await createMakersCertificates(folder, maker, {
    name: format,
    publicKeyPem: authenticator.publicKeyPem,
    challenge: authenticator.clientDataSha256(options.challenge),
    revokedUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/revoked`,
  });
  const credential = authenticator.create(options, { attest: attestAs(format, certificates) });
  return { challenge: options.challenge, credential };
}

// @promise passkey-no-attestation
test.each(['android-key', 'android-safetynet', 'apple', 'fido-u2f', 'packed', 'tpm', 'none', 'unknown'])(
  'a credential with certificates of a maker in the format %s is refused, and no address in them is asked',
  async (format) => {
    const { credential } = await vouchedFor(format);
    expect(await add(credential)).toMatchObject(REFUSED);
    expect(asked).toEqual([]);
  },
);

// Without it, the test above could see no request for another reason, such as a certificate that cannot be read.
test('the library by itself asks the address in such certificates', async () => {
  const { challenge, credential } = await vouchedFor('android-key');
  const { id, ...response } = credential;
  await verifyRegistrationResponse({
    response: { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response },
    expectedChallenge: challenge,
    expectedOrigin: PUBLIC_URL,
    expectedRPID: new URL(PUBLIC_URL).hostname,
  }).catch(() => {
    // The maker is none of those that it knows, which it finds only afterwards.
  });
  expect(asked).toEqual(['/revoked']);
});

// @promise passkey-no-attestation
test.each<[string, Faults]>([
  ['says nothing about its maker', {}],
  ['is signed with its own key alone, which browsers send unasked', { attest: attestAs('packed') }],
])('a credential that %s is added', async (_, faults) => {
  const credential = new Authenticator().create(await optionsOf(api, 'options', browser), faults);
  expect((await add(credential)).status).toBe(201);
});

test.each<[string, Buffer]>([
  ['no CBOR', Buffer.from('ff', 'hex')],
  ['a number', cbor(1)],
  ['an empty list', cbor([])],
  ['an empty map', cbor(new Map())],
  ['a statement without a format', cbor(new Map([['attStmt', new Map()]]))],
  ['a format that is a list', cbor(new Map([['fmt', ['none']]]))],
  ['a format without a statement', cbor(new Map([['fmt', 'packed']]))],
  [
    'a statement that is a text',
    cbor(
      new Map([
        ['fmt', 'packed'],
        ['attStmt', 'x5c'],
      ]),
    ),
  ],
  ['a list in a list, 8,000 times', Buffer.concat([Buffer.alloc(8_000, 0x81), cbor(1)])],
])('an attestation that is %s is refused', async (_, attestation) => {
  const right = new Authenticator().create(await optionsOf(api, 'options', browser));
  const credential = { ...right, attestationObject: attestation.toString('base64url') };
  expect(await add(credential)).toMatchObject(REFUSED);
});
