-- Whether the session that the link starts may pay at first: only if the link was mailed to the member, a few minutes before.
alter table sign_in_links add column raises boolean not null default false;
alter table sign_in_links
  add constraint sign_in_link_raises_briefly check (not raises or key_id is not null and expires_at <= created_at + interval '15 minutes') not valid;
drop trigger sign_in_links_audit on sign_in_links;
-- Who knows the address of a member can have such a link mailed to it: only its use is written.
create trigger sign_in_links_audit after insert on sign_in_links
  for each row when (not new.raises) execute function write_audit_row('sign_in_link', 'key_id', 'expires_at');
