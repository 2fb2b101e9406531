import type { EmailId } from '../domain/ids.ts';

/** Returns the encryption context of the token or code of a mail: its ciphertext says nothing as that of another mail. */
export function mailSecretContext(id: EmailId): string {
  return `email:${id}`;
}
