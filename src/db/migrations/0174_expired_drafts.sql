-- A draft that has expired is not approved.
create function refuse_expired_draft() returns trigger language plpgsql as $$
begin
  raise exception 'payout run %: the draft has expired', new.id using errcode = '23000';
end $$;

create trigger payout_runs_not_expired before update on payout_runs for each row
  when (old.status = 'draft' and new.status = 'approved' and old.expires_at <= now())
  execute function refuse_expired_draft();
