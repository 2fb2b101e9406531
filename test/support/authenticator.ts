import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { TestApi } from './api.ts';
import type { Browser } from './members.ts';

/** The page of the test API, whose public address it is. */
const ORIGIN = 'https://api.example.test';

type Cbor = number | string | Buffer | Cbor[] | ReadonlyMap<number | string, Cbor>;

/** Returns the head of a value in CBOR: its type and its length or number. */
function cborHead(type: number, size: number): Buffer {
  if (size < 24) return Buffer.from([(type << 5) | size]);
  if (size < 256) return Buffer.from([(type << 5) | 24, size]);
  return Buffer.from([(type << 5) | 25, size >> 8, size & 255]);
}

/** Encodes what an authenticator says. */
export function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? cborHead(1, -1 - value) : cborHead(0, value);
  if (typeof value === 'string')
    return Buffer.concat([cborHead(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([cborHead(2, value.length), value]);
  if (Array.isArray(value))
    return Buffer.concat([cborHead(4, value.length), ...value.map((one) => cbor(one))]);
  const pairs = [...value].flatMap(([key, one]) => [cbor(key), cbor(one)]);
  return Buffer.concat([cborHead(5, value.size), ...pairs]);
}

const sha256 = (bytes: Buffer | string): Buffer => createHash('sha256').update(bytes).digest();

/** What an authenticator says about itself when it makes a passkey. */
interface Attestation {
  readonly format: string;
  readonly statement: ReadonlyMap<string, Cbor>;
}

/** Returns it. `signed` is what statements sign: the authenticator data and the hash of the client data. `key` is that of the passkey. */
type Attest = (signed: Buffer, key: KeyObject) => Attestation;

/** What is left when none was asked for: nothing. */
const ATTEST_NOTHING: Attest = () => ({ format: 'none', statement: new Map() });

/** Attests with a signature of the passkey itself. With certificates, the statement is that of a maker. */
export const attestAs =
  (format: string, certificates?: readonly Buffer[]): Attest =>
  (signed, key) => {
    const statement = new Map<string, Cbor>([
      ['alg', -7],
      ['sig', sign('sha256', signed, key)],
    ]);
    if (certificates !== undefined) statement.set('x5c', [...certificates]);
    return { format, statement };
  };

/** What a test changes of a right answer. */
export interface Faults {
  readonly origin?: string;
  readonly rpId?: string;
  readonly type?: string;
  /** The bits of the authenticator data: by default, the person was there (1) and was verified (4). */
  readonly flags?: number;
  readonly userHandle?: string | null;
  readonly attest?: Attest;
}

const PRESENT_AND_VERIFIED = 0b101;
const WITH_CREDENTIAL = 0b100_0000;

/** An authenticator with one passkey, whose key it makes: a device that signs with ES256 as browsers ask it to. */
export class Authenticator {
  readonly credentialId: Buffer;
  /** How often it has signed. Stays 0 for one that does not count. */
  signCount: number;
  readonly #counts: boolean;
  readonly #privateKey: KeyObject;
  /** In PEM. */
  readonly publicKeyPem: string;
  /** In the format of COSE. */
  readonly #publicKey: Buffer;
  #userHandle = Buffer.from('nobody').toString('base64url');

  constructor({
    counts = true,
    credentialId = randomBytes(32),
    keyBytes,
  }: {
    readonly counts?: boolean;
    readonly credentialId?: Buffer;
    /** How long its public key is, in the format of COSE: from 400 bytes on. By default it is as long as that of other authenticators. */
    readonly keyBytes?: number;
  } = {}) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.credentialId = credentialId;
    this.signCount = 0;
    this.#counts = counts;
    this.#privateKey = privateKey;
    this.publicKeyPem = publicKey.export({ format: 'pem', type: 'spki' }).toString();
    const parts = new Map<number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ]);
    // The number of a further part, and its head, take five bytes.
    if (keyBytes !== undefined) parts.set(100, Buffer.alloc(keyBytes - cbor(parts).length - 5));
    this.#publicKey = cbor(parts);
  }

  #clientData(type: string, challenge: string, { origin = ORIGIN, type: other }: Faults): Buffer {
    return Buffer.from(JSON.stringify({ type: other ?? type, challenge, origin, crossOrigin: false }));
  }

  #authenticatorData({ rpId, flags = PRESENT_AND_VERIFIED }: Faults, credential = Buffer.alloc(0)): Buffer {
    if (this.#counts) this.signCount += 1;
    const head = Buffer.alloc(5);
    head.writeUInt8(flags | (credential.length > 0 ? WITH_CREDENTIAL : 0));
    head.writeUInt32BE(this.signCount, 1);
    return Buffer.concat([sha256(rpId ?? new URL(ORIGIN).hostname), head, credential]);
  }

  /** Returns the hash of the client data with which a passkey is made for a challenge. */
  clientDataSha256(challenge: string): Buffer {
    return sha256(this.#clientData('webauthn.create', challenge, {}));
  }

  /** Makes the passkey that creation options ask for. Returns what the console sends of it, without a name. */
  create(
    options: { readonly challenge: string; readonly user: { readonly id: string } },
    faults: Faults = {},
  ) {
    this.#userHandle = options.user.id;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.credentialId.length);
    const credential = Buffer.concat([Buffer.alloc(16), length, this.credentialId, this.#publicKey]);
    const clientData = this.#clientData('webauthn.create', options.challenge, faults);
    const data = this.#authenticatorData(faults, credential);
    const { attest = ATTEST_NOTHING } = faults;
    const { format, statement } = attest(Buffer.concat([data, sha256(clientData)]), this.#privateKey);
    const attestation = new Map<string, Cbor>([
      ['fmt', format],
      ['attStmt', statement],
      ['authData', data],
    ]);
    return {
      id: this.credentialId.toString('base64url'),
      clientDataJSON: clientData.toString('base64url'),
      attestationObject: cbor(attestation).toString('base64url'),
    };
  }

  /** Signs a challenge. Returns what the console sends. */
  answer({ challenge }: { readonly challenge: string }, faults: Faults = {}) {
    const clientData = this.#clientData('webauthn.get', challenge, faults);
    const data = this.#authenticatorData(faults);
    const signature = sign('sha256', Buffer.concat([data, sha256(clientData)]), this.#privateKey);
    return {
      id: this.credentialId.toString('base64url'),
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: signature.toString('base64url'),
      userHandle: faults.userHandle === undefined ? this.#userHandle : faults.userHandle,
    };
  }
}

/** Returns the options of a ceremony. Throws if the service gives none. */
export async function optionsOf(
  api: Pick<TestApi, 'call'>,
  kind: 'options' | 'raise-options' | 'sign-in-options',
  headers: Partial<Browser>,
): Promise<{ readonly challenge: string; readonly user: { readonly id: string } }> {
  const path = `/session/passkeys/${kind}`;
  const answer = await api.call<{ challenge: string; user: { id: string } }>('POST', path, { headers });
  if (answer.status !== 200) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
  return answer.body;
}

/** Adds the passkey of an authenticator to the member of a session that may add one. Returns its id. */
export async function addPasskeyOf(
  api: Pick<TestApi, 'call'>,
  authenticator: Authenticator,
  headers: Browser,
  name = 'Laptop',
): Promise<string> {
  const body = { name, ...authenticator.create(await optionsOf(api, 'options', headers)) };
  const answer = await api.call<{ id: string }>('POST', '/session/passkeys', { headers, body });
  if (answer.status !== 201) throw new Error(`POST /session/passkeys: ${answer.status} ${answer.text}`);
  return answer.body.id;
}
