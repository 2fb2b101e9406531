import { api, given, read } from '../api/client.ts';
import type { Terms } from './draft.ts';
import type { Version } from './queries.ts';

/** What a form publishes. */
export interface Publication {
  readonly terms: Terms;
  /** Epoch ms. Undefined: as soon as possible. */
  readonly effectiveFrom: number | undefined;
}

/** Publishes a version of a policy. A call that is sent again after a lost answer has the same key, and runs once. */
export async function publishVersion(
  appId: string,
  policyId: string,
  { terms, effectiveFrom }: Publication,
  keyOf: (body: object) => string,
): Promise<Version> {
  const body = { ...terms, ...given({ effectiveFrom }) };
  return await read(
    api.POST('/apps/{appId}/policies/{policyId}/versions', {
      params: { path: { appId, policyId }, header: { 'Idempotency-Key': keyOf({ policyId, ...body }) } },
      body,
    }),
  );
}
