import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';

/** What a policy can be assigned to. */
export type Scope =
  | { readonly kind: 'app' }
  | { readonly kind: 'group' | 'affiliate'; readonly id: string; readonly name: string };

/** Assigns a policy, or none, to the app, a group or a creator. */
export async function assignPolicy(
  appId: string,
  scope: Scope,
  policyId: string | null,
  effectiveFrom: number | undefined,
): Promise<Schemas['AssignedPolicy']> {
  const body = { policyId, ...given({ effectiveFrom }) };
  switch (scope.kind) {
    case 'app':
      return await read(api.PUT('/apps/{appId}/policy-assignment', { params: { path: { appId } }, body }));
    case 'group':
      return await read(
        api.PUT('/apps/{appId}/groups/{groupId}/policy-assignment', {
          params: { path: { appId, groupId: scope.id } },
          body,
        }),
      );
    case 'affiliate':
      return await read(
        api.PUT('/apps/{appId}/affiliates/{affiliateId}/policy-assignment', {
          params: { path: { appId, affiliateId: scope.id } },
          body,
        }),
      );
  }
}
