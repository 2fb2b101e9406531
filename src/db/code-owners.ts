import { CUSTOMER_KEY } from '../domain/payment-snapshot.ts';
import { newId } from './new-id.ts';
import type { StoredPayment } from './payments.ts';
import type { Fragment, Statements } from './sql.ts';

/**
 * The `CodeOwner`s of a payment `p` with its rows and references, in its `app`, the first to register a code first. The ids of the bindings that
 * they would make follow (`withNewIds`). Empty if codes attribute nothing in the app: then nothing is looked up.
 */
export function codeOwnersOf(
  sql: Statements,
  { rowIds, refs }: { readonly rowIds: Fragment; readonly refs: Fragment },
): Fragment {
  return sql.fragment`
    case when app.purchase_codes is not null and p.binding_id is null and p.environment = 'production'
         then code_owners(p, ${rowIds}, ${refs}) else '[]' end`;
}

/** The `KeyToBind`s of a payment `p`, as `codeOwnersOf`. */
export function keysToBindOf(sql: Statements, { rowIds }: { readonly rowIds: Fragment }): Fragment {
  return sql.fragment`
    case when app.purchase_codes is not null and p.binding_id is null and p.environment = 'production'
         then keys_to_bind(p, ${rowIds}, ${CUSTOMER_KEY}) else '[]' end`;
}

/** Gives the bindings that codes would make their ids. */
export function withNewIds(payment: StoredPayment): StoredPayment {
  const { codeOwners, keysToBind } = payment;
  if (codeOwners.length === 0 && keysToBind.length === 0) return payment;
  return {
    ...payment,
    codeOwners: codeOwners.map(({ codeId, binding }) => {
      const bindingId = newId('binding');
      const policy = binding.policy && { ...binding.policy, subjectId: bindingId };
      return {
        codeId,
        binding: { ...binding, bindingId, attributionId: newId('attribution'), saidAt: null, policy },
      };
    }),
    keysToBind: keysToBind.map((key) => ({ ...key, bindingId: newId('binding') })),
  };
}
