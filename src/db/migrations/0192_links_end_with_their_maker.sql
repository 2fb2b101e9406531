-- Who copied a link for another member may have it still. With the right to manage members end the links that it has made, and their sessions.
create function end_links_of_maker() returns trigger language plpgsql as $$
begin
  delete from sign_in_links where made_by = new.id and session_id is null;
  update sessions set ended_at = now() where link_made_by = new.id and ended_at is null;
  return null;
end $$;
create trigger account_keys_end_links after update of revoked_at, permissions on account_keys
  for each row when ((old.revoked_at is null and old.permissions @> permissions_of_role('owner'))
                     and (new.revoked_at is not null or not new.permissions @> permissions_of_role('owner')))
  execute function end_links_of_maker();
