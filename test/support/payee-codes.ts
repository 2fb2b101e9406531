import { createSecretBox } from '../../src/config/secret-box.ts';
import { mailSecretContext } from '../../src/db/email-secrets.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { EmailId } from '../../src/domain/ids.ts';
import { TEST_KEY } from './api.ts';

/** Stores an address of a creator that gets codes. */
export async function setOldAddress(sql: Sql, affiliateId: string, email: string): Promise<void> {
  await sql`update affiliates set email = ${email} where id = ${affiliateId}`;
  await sql`
    update affiliates set email_set_at = now() - interval '8 days', email_confirmed = null where id = ${affiliateId}`;
}

/** Returns the code that the mail about a wanted payee has. */
export async function payeeCodeOf(sql: Sql, changeId: string): Promise<string> {
  const mail = await sql.one<{ id: EmailId; ciphertext: Buffer; encryptionKeyId: string }>`
    select id, ciphertext, encryption_key_id from emails where kind = 'payee_code' and subject_id = ${changeId}`;
  const box = createSecretBox([TEST_KEY]);
  return box.decrypt(Buffer.from(mail.ciphertext), mail.encryptionKeyId, mailSecretContext(mail.id));
}
