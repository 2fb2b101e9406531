-- A policy that nobody needs any more can be archived: lists leave it out, and it is assigned to nobody. What was earned by it stays.
alter table policies add column archived_at timestamptz check (archived_at >= created_at);

drop trigger policies_audit on policies;
create trigger policies_audit after insert or update on policies
  for each row execute function write_audit_row('policy', 'id', 'name archived_at');

-- Whether a policy is in effect for somebody, or will be: the latest assignment of a scope counts, and of each later instant the last one.
create function policy_is_assigned(of_app app_id, of_policy policy_id) returns boolean language sql stable as $$
  select exists (
    select from policy_assignments a
     where a.app_id = of_app and a.policy_id = of_policy
       and (a.effective_from > now() and not exists (
              select from policy_assignments x
               where x.scope_id = a.scope_id and x.effective_from = a.effective_from and x.position > a.position)
            or a.position = (select x.position from policy_assignments x
                              where x.scope_id = a.scope_id and x.effective_from <= now()
                              order by x.effective_from desc, x.position desc limit 1)))
$$;

-- Both run behind the lock of the app.
create function guard_archived_policy() returns trigger language plpgsql as $$
begin
  if policy_is_assigned(new.app_id, new.id) then
    raise exception 'policy % is assigned and cannot be archived', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger policies_archived before update on policies
  for each row when (old.archived_at is null and new.archived_at is not null) execute function guard_archived_policy();

create function refuse_archived_policy() returns trigger language plpgsql as $$
begin
  if exists (select from policies p where p.app_id = new.app_id and p.id = new.policy_id and p.archived_at is not null) then
    raise exception 'policy % is archived and cannot be assigned', new.policy_id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger policy_assignments_of_no_archived before insert on policy_assignments
  for each row when (new.policy_id is not null) execute function refuse_archived_policy();
