import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
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

/** Creates a certificate for `hosts`, such as `DNS:localhost`, that an authority signs. It expires in `days`, which may be negative. */
export async function createCertificate(
  folder: string,
  authority: Certificate,
  { name, hosts, days = 2 }: { readonly name: string; readonly hosts: string; readonly days?: number },
): Promise<Certificate> {
  const files = filesOf(folder, name);
  const [request, extensions] = [path.join(folder, `${name}.csr`), path.join(folder, `${name}.ext`)];
  await writeFile(extensions, `subjectAltName=${hosts}\n`);
  await run('openssl', ['req', ...KEY, '-keyout', files.key, '-out', request, '-subj', `/CN=${name}`]);
  const signer = ['-CA', authority.certificate, '-CAkey', authority.key, '-CAcreateserial'];
  const signing = ['x509', '-req', '-in', request, '-days', String(days), ...signer];
  await run('openssl', [...signing, '-extfile', extensions, '-out', files.certificate]);
  return files;
}
