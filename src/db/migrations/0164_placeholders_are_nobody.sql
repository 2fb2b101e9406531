-- Whether a user is somebody. Earlier versions took placeholders such as `guest` for users and bound them. A binding of one makes no second
-- user of a person, and the receiver of a transfer from it is not counted with it. The list is that of src/domain/user-ids.ts, in the usual
-- spellings.
create function is_somebody(customer_user_id text) returns boolean language sql immutable parallel safe as $$
  select customer_user_id !~ '^[0\s!-/:-@\[-`{-~]*$'
     and lower(regexp_replace(customer_user_id, '["''`\s_]', '', 'g')) <> all (array[
           'nouser', 'no-user', 'null', 'none', 'nil', '(null)', 'nan', 'unidentified', 'undefined', 'unknown', 'anonymous', 'anon', 'guest',
           'default', 'test', 'n/a', 'na', 'true', 'false', 'unset', 'notset', '(notset)', 'empty', 'optional(nil)', '<null>', '<nil>',
           '[objectobject]', '-1', 'unknownuser', 'anonymoususer', 'guestuser', 'loggedout', 'logged-out', 'notloggedin', 'nouserid',
           'appuserid', '${userid}', '{{userid}}'])
$$;

create or replace function is_only_user(b bindings, at timestamptz) returns boolean language sql stable parallel safe as $$
  select is_somebody(b.customer_user_id)
     and not exists (select from bindings z
                      where z.id = b.counts_with and z.key_source is null and z.created_at <= at and is_somebody(z.customer_user_id))
     and not exists (select from bindings z
                      where z.counts_with = coalesce(b.counts_with, b.id::text) and z.id <> b.id
                        and z.key_source is null and z.created_at <= at and is_somebody(z.customer_user_id))
$$;

create or replace function binding_of_giver(of_app app_id, receiver text, of_attribution attribution_id) returns text language sql stable as $$
  select min(coalesce(b.counts_with, b.id::text))
    from user_transfers r
    join user_transfers g on g.event_id = r.event_id and g.app_id = r.app_id and g.role = 'giver'
    join bindings b on b.app_id = g.app_id and b.customer_user_id = g.customer_user_id
   where r.app_id = of_app and r.customer_user_id = receiver and r.role = 'receiver' and b.customer_user_id <> receiver
     and of_attribution in (b.attribution_id, attribution_at(b, now())) and is_somebody(b.customer_user_id)
$$;
