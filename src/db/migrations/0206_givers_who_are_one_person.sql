-- As a transfer binds its receivers: givers who count together are one person. Otherwise it depended on which of them was bound first.
create or replace function binding_of_giver(of_app app_id, receiver text, of_attribution attribution_id) returns text language sql stable as $$
  select min(root)
    from (select min(coalesce(b.counts_with, b.id::text)) as root
            from user_transfers r
            join user_transfers g on g.event_id = r.event_id and g.app_id = r.app_id and g.role = 'giver'
            join bindings b on b.app_id = g.app_id and b.customer_user_id = g.customer_user_id
           cross join lateral (select attribution_at(b, now()) as id) a
           where r.app_id = of_app and r.customer_user_id = receiver and r.role = 'receiver' and b.customer_user_id <> receiver
             and a.id is not null and is_somebody(b.customer_user_id)
           group by r.event_id
          having count(distinct coalesce(b.counts_with, b.id::text)) = 1 and count(distinct a.id) = 1
             and bool_and(of_attribution in (b.attribution_id, a.id))) x
$$;
