import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import type { Founder } from './founder.ts';
import { bodyOf, fakeSecret, PROOFS } from './provider-fixtures.ts';
import type { Payload } from './provider-fixtures.ts';

const SECRETS = Object.fromEntries(PROVIDER_NAMES.map((name) => [name, fakeSecret(name)])) as Record<
  ProviderName,
  string | null
>;

/** Configures the webhooks of a provider as a founder does. Returns the secret, given or generated. */
export async function connectProvider(
  founder: Founder,
  name: ProviderName,
  { secret = SECRETS[name], ...over }: { readonly secret?: string | null } & Record<string, unknown> = {},
): Promise<string> {
  const given = { environment: 'production', ...(secret === null ? {} : { secret }), ...over };
  const put = await founder.ok<{ secret?: string }>(
    'PUT',
    `/apps/${founder.app.id}/webhooks/${name}/secret`,
    given,
  );
  return put.secret ?? secret ?? '';
}

/** Posts a webhook with the headers that prove it. */
export async function deliver(founder: Founder, name: ProviderName, payload: Payload, secret: string) {
  const body = bodyOf(payload);
  return await founder.webhook(name, body, PROOFS[name](body, secret));
}
