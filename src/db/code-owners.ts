import { newId } from './new-id.ts';
import type { StoredPayment } from './payments.ts';
import type { Fragment, Statements } from './sql.ts';

/**
 * The `CodeOwner`s of a payment `p` with its references, in its `app`, the first to register a code first. The ids of the bindings that
 * they would make follow (`withNewIds`). Empty if codes attribute nothing in the app: then nothing is looked up.
 */
export function codeOwnersOf(sql: Statements, refs: Fragment): Fragment {
  return sql.fragment`
    case when app.purchase_codes is not null and p.binding_id is null and p.environment = 'production' then coalesce((
      select jsonb_agg(jsonb_build_object(
               'codeId', c.id,
               'binding', jsonb_build_object(
                 'boundAt', epoch_ms(now()), 'touchedAt', epoch_ms(p.occurred_at), 'matchMethod', 'purchase_code', 'reassignedTo', null,
                 'affiliateId', f.id, 'linkId', null, 'affiliateStatus', f.status,
                 'affiliateRateBps', f.default_commission_rate_bps,
                 'policy', case when app.policies_from <= now() then jsonb_build_object(
                   'payments', 0, 'firstPaidAt', null, 'hasUnnumbered', false,
                   'assigned', (
                     select jsonb_build_object('scope', i.scope, 'versionId', i.version_id, 'terms', i.terms)
                       from policy_in_effect(p.app_id, f.id, p.occurred_at) i)) end)) order by c.created_at, c.id)
        from (
          select distinct x.namespace, x.value from unnest(${refs}) n (ref)
           cross join lateral (
             select * from payment_codes y
              where y.app_id = p.app_id and y.environment = p.environment and y.store = p.store and y.payment_ref = n.ref collate "default" offset 0) x) s
       cross join lateral (
         -- A code works from its registration until it is deactivated. Of some namespaces events state the id.
         select * from (
             (select * from codes y
               where y.app_id = p.app_id and y.namespace = s.namespace and y.external_id is null
                 and lower(y.value) collate "C" = lower(s.value) collate "C"
                 and y.created_at <= p.occurred_at and coalesce(y.deactivated_at > p.occurred_at, true) order by y.created_at limit 1)
             union all
             (select * from codes y
               where y.app_id = p.app_id and y.namespace = s.namespace and y.external_id = s.value collate "C"
                 and y.created_at <= p.occurred_at and coalesce(y.deactivated_at > p.occurred_at, true) order by y.created_at limit 1)) o
          limit 1) c
       cross join lateral (select * from affiliates y where y.id = c.affiliate_id offset 0) f
       where f.status <> 'removed'), '[]') else '[]' end`;
}

/** Gives the bindings that codes would make their ids. */
export function withNewIds(payment: StoredPayment): StoredPayment {
  if (payment.codeOwners.length === 0) return payment;
  return {
    ...payment,
    codeOwners: payment.codeOwners.map(({ codeId, binding }) => {
      const bindingId = newId('binding');
      const policy = binding.policy && { ...binding.policy, subjectId: bindingId };
      return { codeId, binding: { ...binding, bindingId, attributionId: newId('attribution'), policy } };
    }),
  };
}
