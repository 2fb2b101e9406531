-- Whether a policy was ever assigned to a creator or a group. Until then, a payment asks for the app's policy only.
alter table apps add column assigns_policies_to_creators boolean not null default false;

update apps set assigns_policies_to_creators = true
 where exists (select from policy_assignments a
                where a.app_id = apps.id and (a.affiliate_id is not null or a.group_id is not null));

create or replace function begin_policies() returns trigger language plpgsql as $$
declare
  is_of_creators boolean := new.affiliate_id is not null or new.group_id is not null;
begin
  update apps
     set policies_from = least(policies_from, new.effective_from),
         assigns_policies_to_creators = assigns_policies_to_creators or is_of_creators
   where id = new.app_id
     and (policies_from is null or policies_from > new.effective_from or (is_of_creators and not assigns_policies_to_creators));
  return null;
end $$;

-- `of_affiliate` is null where only the app's policy can apply.
create or replace function assigned_policy(of_app text, of_affiliate text, at timestamptz)
returns json language plpgsql stable parallel safe as $$
declare
  scope text;
  of_scope text;
  assigned text;
  version record;
begin
  foreach scope in array case when of_affiliate is null then array['app'] else array['affiliate', 'group', 'app'] end loop
    if scope = 'group' then
      select m.group_id into of_scope from group_memberships m
       where m.affiliate_id = of_affiliate and m.effective_from <= at order by m.effective_from desc, m.position desc limit 1;
      continue when of_scope is null;
    else
      of_scope := case scope when 'app' then of_app else of_affiliate end;
    end if;
    select a.policy_id into assigned from policy_assignments a
     where a.scope_id = of_scope and a.effective_from <= at
     order by a.effective_from desc, a.position desc limit 1;
    continue when assigned is null;
    select v.id, v.terms into version from policy_versions v
     where v.policy_id = assigned and v.effective_from <= at order by v.effective_from desc, v.version desc limit 1;
    if found then
      return json_build_object('scope', scope, 'versionId', version.id, 'terms', version.terms);
    end if;
  end loop;
  return null;
end $$;
