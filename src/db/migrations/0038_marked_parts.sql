-- A part that was attributed before 0029 earns beside the whole until the next event of the payment. The marks have the relay
-- evaluate all rows of such a payment. Few rows have a reference that is an alias: the others are neither read nor written.
update payments p set recheck_since = now(), version = p.version + 1
 where p.id = any(array(
   select q.id
     from payments q
    where q.id = any(array(
      select x.id
        from payment_aliases l
       cross join lateral (
         select * from payments y
          where y.app_id = l.app_id and y.environment = l.environment and y.store = l.store and y.ref = l.alias_ref
            and y.binding_id is not null and y.duplicate_of is null offset 0) part
       cross join lateral whole_payment(part) whole
       cross join lateral same_payment(part.app_id, part.environment, part.store, array[part.ref]) x
       where l.environment = 'production' and is_part_of(part, whole)))
    order by q.id for update));
