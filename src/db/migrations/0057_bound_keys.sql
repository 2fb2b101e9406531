-- Whom a code binds if a purchase names no user: `customer_user_id` is then a key of this provider. Null for a user.
alter table bindings
  add column key_source text collate "C",
  add constraint key_is_of_a_provider check (key_source ~ '^[a-z]{1,20}$') not valid;
drop trigger bindings_immutable on bindings;
create trigger bindings_immutable before update on bindings
  for each row when (old.attribution_id <> new.attribution_id or old.customer_user_id <> new.customer_user_id
                     or old.counts_with is distinct from new.counts_with or old.key_source is distinct from new.key_source
                     or (old.reassigned_at is not null and old.reassigned_at is distinct from new.reassigned_at)
                     or (old.first_paid_at is not null and old.first_paid_at is distinct from new.first_paid_at))
  execute function forbid_binding_change();

-- A key that was erased has a pseudonym, too.
create or replace function is_pseudonym(of_app app_id, candidate text) returns boolean language sql stable as $$
  select exists (select from erased_identifiers e
                  where e.app_id = of_app and e.pseudonym = split_part(candidate, '~', 1) and e.kind in ('user', 'key'))
$$;
