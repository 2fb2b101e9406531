-- An invoice that no event has reported yet ties its payment intents to nothing: each was paid, and each earns by itself. When the
-- invoice is reported, all of them are parts of it. Without this the first part alone earned, and the refund of another one was
-- taken from it.
create or replace function same_payment_refs(of_app app_id, of_environment environment, of_store text, refs text[])
returns table (ref text) language sql stable parallel safe rows 3 as $$
  with recursive names (ref) as (
    select unnest(refs) collate "default"
    union
    select other.ref
      from names n
     cross join lateral (
       select l.payment_ref as ref, l.payment_ref from payment_aliases l
        where l.app_id = of_app and l.environment = of_environment and l.store = of_store collate "default" and l.alias_ref = n.ref collate "default"
       union all
       select l.alias_ref, l.payment_ref from payment_aliases l
        where l.app_id = of_app and l.environment = of_environment and l.store = of_store collate "default" and l.payment_ref = n.ref collate "default"
     ) other (ref, payment_ref)
     -- A reference that reported money, that is itself an alias, or of which an earlier version has corrected a part.
     where (select true from payments p
             where p.app_id = of_app and p.environment = of_environment and p.store = of_store collate "default"
               and p.ref = other.payment_ref collate "default" limit 1) is not null
        or (select true from payment_aliases l
             where l.app_id = of_app and l.environment = of_environment and l.store = of_store collate "default"
               and l.alias_ref = other.payment_ref collate "default" and l.payment_ref <> l.alias_ref limit 1) is not null
        or (select true from payment_aliases l
              join payments d on d.app_id = l.app_id and d.environment = l.environment and d.store = l.store and d.ref = l.alias_ref
             where l.app_id = of_app and l.environment = of_environment and l.store = of_store collate "default"
               and l.payment_ref = other.payment_ref collate "default" and d.duplicate_of is not null limit 1) is not null)
  select names.ref from names
$$;
