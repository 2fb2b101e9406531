-- Transfers of a payout that reports of payment services have named beside the one that is stated, and that had not come back: a file that
-- was uploaded again makes a second one. Money that may have arrived by one of them is not sent again.
create table other_transfers (
  app_id     app_id not null,
  payout_id  payout_id not null,
  -- The number of statements about the payout at that time. A later statement takes it into account.
  position   integer not null check (position between 0 and 100),
  -- Empty: the report had none.
  reference  text not null check (length(reference) <= 200),
  account_id account_id not null,
  key_id     key_id not null,
  created_at timestamptz not null default now(),
  primary key (payout_id, position, reference),
  foreign key (app_id, payout_id) references payouts (app_id, id),
  foreign key (account_id, key_id) references account_keys (account_id, id)
);
create trigger other_transfers_append_only before update or delete or truncate on other_transfers
  for each statement execute function forbid_change();
create trigger other_transfers_audit after insert on other_transfers
  for each row execute function write_audit_row('other_transfer', 'payout_id', 'reference position');

-- Who keeps another transfer, and who sends the money of the payout again, wait for each other.
create function lock_payout_of_transfer() returns trigger language plpgsql as $$
begin
  perform from payouts p where p.id = new.payout_id for no key update;
  return new;
end $$;
create trigger other_transfers_lock before insert on other_transfers for each row execute function lock_payout_of_transfer();

-- Whether a report contradicts the statement that the money of a payout came back, and nothing was stated about that since.
create function is_return_contradicted(of_payout text, return_position integer) returns boolean language sql stable as $$
  select exists (select from other_transfers o where o.payout_id = of_payout and o.position >= return_position)
$$;

create function refuse_contradicted_resend() returns trigger language plpgsql as $$
begin
  perform from payouts p where p.id = new.payout_id for no key update;
  if is_return_contradicted(new.payout_id, new.return_position) then
    raise exception 'the return of payout % is contradicted by a report: its money is not sent again', new.payout_id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_run_items_contradicted before update on payout_run_items
  for each row when (new.return_position is not null and old.return_position is null) execute function refuse_contradicted_resend();
