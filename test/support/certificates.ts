import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** The files of a certificate and its key, in PEM. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

const filesOf = (folder: string, name: string): Certificate => ({
  certificate: path.join(folder, `${name}.crt`),
  key: path.join(folder, `${name}.key`),
});

/** Creates the certificate of an authority, which it signs itself. */
export async function createAuthority(folder: string, name: string): Promise<Certificate> {
  const files = filesOf(folder, name);
  const out = ['-keyout', files.key, '-out', files.certificate, '-subj', `/CN=${name}`];
  await run('openssl', ['req', '-x509', ...KEY, '-days', '2', ...out]);
  return files;
}

interface CertificateRequest {
  readonly name: string;
  readonly subject: string;
  /** In the format of the configuration of openssl. */
  readonly extensions: readonly string[];
  /** When it expires. May be negative. */
  readonly days: number;
  /** The file of the key that is certified, in PEM, instead of a new one. */
  readonly publicKey?: string;
}

async function signCertificate(
  folder: string,
  authority: Certificate,
  { name, subject, extensions, days, publicKey }: CertificateRequest,
): Promise<Certificate> {
  const files = filesOf(folder, name);
  const [request, extensionFile] = [path.join(folder, `${name}.csr`), path.join(folder, `${name}.ext`)];
  await writeFile(extensionFile, `${extensions.join('\n')}\n`);
  await run('openssl', ['req', ...KEY, '-keyout', files.key, '-out', request, '-subj', subject]);
  const signer = ['-CA', authority.certificate, '-CAkey', authority.key, '-CAcreateserial'];
  const certified = publicKey === undefined ? [] : ['-force_pubkey', publicKey];
  const signing = ['x509', '-req', '-in', request, '-days', String(days), ...certified, ...signer];
  await run('openssl', [...signing, '-extfile', extensionFile, '-out', files.certificate]);
  return files;
}

/** Creates a certificate for `hosts`, such as `DNS:localhost`, that an authority signs. It expires in `days`, which may be negative. */
export async function createCertificate(
  folder: string,
  authority: Certificate,
  { name, hosts, days = 2 }: { readonly name: string; readonly hosts: string; readonly days?: number },
): Promise<Certificate> {
  const extensions = [`subjectAltName=${hosts}`];
  return await signCertificate(folder, authority, { name, subject: `/CN=${name}`, extensions, days });
}

/**
 * Returns the description of a key in an Android keystore (KeyDescription, in DER): versions and levels, the challenge of 32 bytes that
 * it answers, no id, and two empty lists of authorizations.
 */
const androidKeyDescription = (challenge: Buffer): string =>
  `30340201030a01000201040a01000420${challenge.toString('hex')}040030003000`;

/**
 * Creates the certificates with which a maker of authenticators vouches for the key of a passkey, as Android does, too: that of the key,
 * which names the address of the list of revoked ones, and that of the maker. Both are in DER.
 */
export async function createMakersCertificates(
  folder: string,
  maker: Certificate,
  {
    name,
    publicKeyPem,
    challenge,
    revokedUrl,
  }: {
    readonly name: string;
    readonly publicKeyPem: string;
    /** What the certificate of an Android key contains: the hash of the client data. */
    readonly challenge: Buffer;
    readonly revokedUrl: string;
  },
): Promise<Buffer[]> {
  const publicKey = path.join(folder, `${name}.pub`);
  await writeFile(publicKey, publicKeyPem);
  const { certificate } = await signCertificate(folder, maker, {
    name,
    subject: '/C=SE/O=Maker/OU=Authenticator Attestation/CN=Authenticator',
    extensions: [
      'basicConstraints=CA:FALSE',
      `crlDistributionPoints=URI:${revokedUrl}`,
      `1.3.6.1.4.1.11129.2.1.17=DER:${androidKeyDescription(challenge)}`,
    ],
    days: 2,
    publicKey,
  });
  const files = [certificate, maker.certificate];
  return await Promise.all(files.map(async (file) => new X509Certificate(await readFile(file)).raw));
}
