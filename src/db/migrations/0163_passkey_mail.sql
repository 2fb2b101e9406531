-- Whoever adds a passkey can sign in with it from then on, so its member learns of it also where somebody else has added it.
create function mail_added_passkey() returns trigger language plpgsql as $$
begin
  insert into emails (id, account_id, member_id, kind, subject_id) values (new_email_id(), new.account_id, new.member_id, 'passkey_added', new.id);
  return null;
end $$;
create trigger passkeys_mail after insert on passkeys for each row execute function mail_added_passkey();
