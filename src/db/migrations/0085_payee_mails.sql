-- A creator learns of each version of the payee. A trigger, so that no way of setting one forgets it.
create function queue_email(of_app app_id, to_creator affiliate_id, of_kind text, subject text) returns void language sql volatile as $$
  insert into emails (id, app_id, affiliate_id, kind, subject_id, status, last_problem, ended_at, next_attempt_at, relay_at)
  select new_email_id(), f.app_id, f.id, of_kind, subject, case when f.email is null then 'skipped' else 'queued' end,
         case when f.email is null then 'The creator has no e-mail address.' end,
         case when f.email is null then now() end, case when f.email is not null then now() end, case when f.email is not null then now() end
    from affiliates f where f.app_id = of_app and f.id = to_creator
  on conflict (app_id, kind, subject_id) do nothing
$$;

create function mail_changed_payee() returns trigger language plpgsql as $$
begin
  perform queue_email(new.app_id, new.affiliate_id, 'payee_changed', new.id);
  return null;
end $$;
create trigger payees_mail after insert on payees for each row execute function mail_changed_payee();
