import type { Evaluation } from '../domain/evaluation.ts';
import type { StoredPayment } from './payments.ts';
import { instant } from './sql.ts';
import type { Fragment, Statements } from './sql.ts';

/**
 * What comes before `locked`, if nobody has changed the payment (`unchanged`, locked). Without one of the rows, `locked` is empty: the
 * payment is read and evaluated again.
 *
 * - `bound` and `attributed` bind the user, or a key, by the code of the purchase, unless somebody else has just bound it;
 * - `numbered` gives the payment its number in an app with policies, unless another payment of the customer has it;
 * - `further_keys` binds the other keys of `person`, whom a code has bound, unless the payment lacks its number.
 */
export function prepare(
  sql: Statements,
  evaluation: Evaluation,
  { occurredAt, appId }: StoredPayment,
  unchanged: Fragment,
): Fragment {
  const { numbered, boundBy, binding, customerUserId, furtherKeys } = evaluation;
  // A payment that was written without a number, just before the app's first policy took effect, comes first.
  const isFirst = numbered?.number === 1 && numbered.countsAs === null && boundBy === null;
  const first =
    isFirst && binding?.policy?.hasUnnumbered === false
      ? sql.fragment`
    customer as materialized (
      select id from bindings where id = ${binding.bindingId} and first_paid_at is null for no key update
    ),`
      : null;
  const hasOneReader = boundBy === null && furtherKeys.length === 0;
  const before = hasOneReader ? sql.fragment`` : sql.fragment`unchanged as materialized (${unchanged}),`;
  const bound =
    boundBy === null
      ? sql.fragment``
      : sql.fragment`
    bound as (
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, first_paid_at, key_source)
      select ${boundBy.binding.bindingId}::text, app_id, ${customerUserId}::text, ${boundBy.binding.attributionId}::text, now(),
             ${binding === null ? null : instant(occurredAt)}::timestamptz, ${boundBy.key?.source ?? null}::text from unchanged
      on conflict (app_id, customer_user_id) do nothing
      returning id
    ), attributed as (
      insert into attributions (id, app_id, affiliate_id, code_id, match_method, touched_at, first_open_at)
      select ${boundBy.binding.attributionId}::text, ${appId}::text, ${boundBy.binding.affiliateId}::text, ${boundBy.codeId}::text,
             'purchase_code', ${instant(boundBy.binding.touchedAt)}::timestamptz, ${instant(boundBy.binding.touchedAt)}::timestamptz from bound
    ),`;
  const person = holdPerson(sql, evaluation);
  const keys = bindFurtherKeys(sql, evaluation);
  if (numbered === null) return sql.fragment`${before} ${bound} ${person} ${keys}`;
  const { subjectId, number, firstPaidAt, countsAs } = numbered;
  return sql.fragment`
    ${before} ${bound} ${first ?? sql.fragment``} ${person} numbered as (
      insert into payment_numbers (payment_id, app_id, subject_id, number, first_paid_at, counts_as)
      select id, app_id, ${subjectId}::text, ${number}::int, ${instant(firstPaidAt)}::timestamptz, ${countsAs}::text
        from ${hasOneReader ? sql.fragment`(${unchanged})` : sql.fragment``} unchanged
       where true ${boundBy === null ? sql.fragment`` : sql.fragment`and exists (select from bound)`}
             ${first === null ? sql.fragment`` : sql.fragment`and exists (select from customer)`}
             ${furtherKeys.length === 0 ? sql.fragment`` : sql.fragment`and exists (select from person)`}
      on conflict do nothing
      returning payment_id
    ), ${keys}`;
}

/** Holds the first binding of a person who gets further keys, as a founder does who gives the person away at the same time. */
function holdPerson(sql: Statements, { furtherKeys, boundBy, binding }: Evaluation): Fragment {
  if (furtherKeys.length === 0) return sql.fragment``;
  const person =
    boundBy === null
      ? sql.fragment`
          select b.attribution_id::text as attribution_id, r.id::text as id, r.reassigned_at
            from bindings b join bindings r on r.id = coalesce(b.counts_with, b.id::text)
           where b.id = ${binding?.bindingId ?? null} for no key update of r`
      : sql.fragment`
          select ${boundBy.binding.attributionId}::text as attribution_id, id::text as id, null::timestamptz as reassigned_at from bound`;
  return sql.fragment`person as materialized (${person}),`;
}

/**
 * Binds the further keys of a person whom a code has bound. A key that somebody else has just bound violates its unique key, so that the
 * payment is read again. Without its number the payment is read again, too: its next evaluation finds these keys and reports their bindings.
 */
function bindFurtherKeys(sql: Statements, { furtherKeys, numbered }: Evaluation): Fragment {
  if (furtherKeys.length === 0) return sql.fragment``;
  return sql.fragment`
    further_keys as (
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, key_source, counts_with, reassigned_at)
      select k."bindingId", unchanged.app_id, k."userKey", person.attribution_id, now(), k.source, person.id, person.reassigned_at
        from unchanged, person,
             jsonb_to_recordset(${sql.json(furtherKeys)}) k ("bindingId" text, "userKey" text, source text)
             ${numbered === null ? sql.fragment`` : sql.fragment`where exists (select from numbered)`}
       order by k."userKey"
      returning 1
    ),`;
}
