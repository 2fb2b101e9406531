-- As before, with the other keys of the payment but its customer: a subscription beside the anonymous id. What a code binds there is one person,
-- and after a restored purchase only the subscription is the same.
create or replace function key_to_bind(p payments, row_ids text[], customer_key text) returns jsonb language sql stable parallel safe as $$
  with keys as (
    select y.user_key, y.source::text, y.payment_id <> p.id as is_of_other, y.position
      from unnest(row_ids) i
     cross join lateral (select * from payment_user_keys x where x.payment_id = i offset 0) y
     where y.user_key !~ customer_key
  )
  select jsonb_build_object(
           'userKey', k.user_key, 'source', k.source,
           'others', coalesce((
             select jsonb_agg(distinct jsonb_build_object('userKey', o.user_key)) from keys o
              where o.source = k.source and o.user_key <> k.user_key
                and not exists (select from bindings b where b.app_id = p.app_id and b.customer_user_id = o.user_key)), '[]'))
    from (
      select * from (
        select user_key, source, 1 as rank, is_of_other, position from keys
        union all
        select p.ref, e.source::text, 2, false, 0 from events e where e.id = p.event_id) x
       order by rank, is_of_other, position, user_key limit 1) k
   where not exists (select from bindings b where b.app_id = p.app_id and b.customer_user_id = k.user_key)
$$;
