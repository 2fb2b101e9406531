-- The key of a purchase is that of its customer, too, where events name it with somebody who belongs to the same person: one who signed in after
-- a founder gave the person away has the founder's attribution. So it does not matter who is bound first. `owners` is for processes of earlier versions.
create or replace function keys_to_bind(p payments, row_ids text[], customer_key text) returns jsonb language sql stable parallel safe as $$
  with keys as materialized (
    select distinct on (y.user_key) y.user_key, y.source::text, y.payment_id <> p.id as is_of_other, y.position
      from unnest(row_ids) i
     cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) y
     where y.user_key !~ customer_key
     order by y.user_key, y.payment_id <> p.id, y.position
  ), own as (
    select k.*, null as is_payment from keys k
    union all
    select p.ref, e.source::text, false, 0, true from events e where e.id = p.event_id and not exists (select from keys)
  )
  select coalesce(jsonb_agg(jsonb_build_object('userKey', k.user_key, 'source', k.source, 'isPayment', coalesce(k.is_payment, false),
                                               'owners', o.owners, 'users', o.users)
                            order by k.is_of_other, k.position, k.user_key), '[]')
    from (select * from own x
           where not exists (select from bindings b where b.app_id = p.app_id and b.customer_user_id = x.user_key) offset 0) k
   cross join lateral (
     select coalesce(jsonb_agg(w.attribution_id), '[]') as owners,
            coalesce(jsonb_agg(jsonb_build_object('customerUserId', w.customer_user_id, 'attributionId', w.attribution_id)), '[]') as users
       from (select u.customer_user_id, first.attribution_id::text as attribution_id
               from users_of_key(p.app_id, k.user_key, k.source) u
              cross join lateral (
                select * from bindings z where z.app_id = p.app_id and z.customer_user_id = u.customer_user_id offset 0) b
              cross join lateral (
                select z.attribution_id from bindings z where z.id = coalesce(b.counts_with, b.id::text) offset 0) first offset 0) w) o
$$;
