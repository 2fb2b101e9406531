-- Money that came back is sent again by a run of its own: in new files with new keys, to the payees of then. The ledger stays as it is, since
-- the payouts were made.
alter table payout_runs
  add column kind text collate "C" not null default 'pay',
  add constraint payout_runs_kind_check check (kind in ('pay', 'resend')) not valid;

alter table payout_run_items
  -- What an item of a resend run sends again: a payout whose money came back. Its result says whether it is in a file, and the position of
  -- the statement that the money came back, which is sent again once.
  add column payout_id payout_id,
  add column resend_result text collate "C",
  add column return_position integer,
  add constraint payout_run_items_resend_result_check check (resend_result in ('resent', 'not_returned', 'blocked', 'payee_changed')) not valid,
  add constraint resent_item_names_its_return check ((resend_result is not null and resend_result = 'resent') = (return_position is not null)) not valid,
  add constraint item_pays_or_resends check (payout_id is null and resend_result is null or payout_id is not null and request_id is null) not valid,
  add constraint payout_run_items_payout_fkey foreign key (app_id, payout_id) references payouts (app_id, id) not valid,
  add constraint payout_run_items_return_fkey foreign key (payout_id, return_position) references payout_transfers (payout_id, position) not valid,
  drop constraint payout_run_items_run_id_affiliate_id_key;
create unique index payout_run_items_of_creator on payout_run_items (run_id, affiliate_id) where payout_id is null;
create unique index payout_run_items_of_payout on payout_run_items (run_id, payout_id) where payout_id is not null;
create unique index payout_run_items_one_per_return on payout_run_items (payout_id, return_position) where return_position is not null;
create index payout_transfers_returned on payout_transfers (app_id, payout_id) where state = 'returned';

-- The statements about a payout that hold, in turn: a withdrawal takes back the one before that holds.
create function holding_transfers(of_payout text) returns table (transfer_position integer, transfer_state text, stated_at timestamptz)
language plpgsql stable as $$
declare
  statement payout_transfers;
  holding payout_transfers[] := '{}';
begin
  for statement in select * from payout_transfers t where t.payout_id = of_payout order by t.position loop
    if statement.state in ('sent', 'returned') then
      holding := holding || statement;
    else
      holding := holding[1:cardinality(holding) - 1];
    end if;
  end loop;
  return query select h.position, h.state, h.created_at from unnest(holding) h;
end $$;

-- The last statement about a payout that holds: where its money is. No row: nothing holds.
create function money_of_payout(of_payout text) returns table (transfer_position integer, transfer_state text, stated_at timestamptz)
language sql stable as $$
  select h.transfer_position, h.transfer_state, h.stated_at from holding_transfers(of_payout) h order by h.transfer_position desc limit 1
$$;

-- Who answers a return by sending the money again, and who withdraws the return, wait for each other.
create function keep_answered_return() returns trigger language plpgsql as $$
begin
  perform from payouts p where p.id = new.payout_id for no key update;
  if exists (select from money_of_payout(new.payout_id) m
              join payout_run_items i on i.payout_id = new.payout_id and i.return_position = m.transfer_position) then
    raise exception 'the return of payout % was answered: its money is sent again', new.payout_id
      using errcode = 'integrity_constraint_violation', constraint = 'answered_return_is_kept';
  end if;
  return new;
end $$;
create trigger payout_transfers_answered_return before insert on payout_transfers
  for each row when (new.state = 'return_withdrawn') execute function keep_answered_return();

drop trigger payout_runs_audit on payout_runs;
create trigger payout_runs_audit after insert or update of status, stopped_at on payout_runs for each row
  when (new.status <> 'settled') execute function
  write_audit_row('payout_run', 'id', 'kind status minimum_cents item_count total_cents approved_by stopped_at');

create or replace function payout_run_transition() returns trigger language plpgsql as $$
begin
  if (old.id, old.app_id, old.account_id, old.key_id, old.kind, old.as_of, old.minimum_cents, old.includes_without_payee, old.item_count, old.total_cents, old.created_at, old.expires_at)
       is distinct from
     (new.id, new.app_id, new.account_id, new.key_id, new.kind, new.as_of, new.minimum_cents, new.includes_without_payee, new.item_count, new.total_cents, new.created_at, new.expires_at)
     or (old.status, new.status) not in (('draft', 'draft'), ('draft', 'approved'), ('draft', 'cancelled'), ('approved', 'approved'),
                                         ('approved', 'settled'))
     or old.approved_at is not null and (old.approved_at, old.approved_by) is distinct from (new.approved_at, new.approved_by) then
    raise exception 'payout run % is %, and that does not change this way', old.id, old.status using errcode = 'integrity_constraint_violation';
  end if;
  if old.status = 'draft' and new.status = 'approved' and not (
       select new.total_cents = coalesce(sum(i.expected_cents), 0) and new.item_count = count(*) and count(*) > 0
         from payout_run_items i where i.run_id = new.id) then
    raise exception 'the items of payout run % are not its total', new.id using errcode = 'integrity_constraint_violation';
  end if;
  if new.status = 'settled' and exists (
       select from payout_run_items i left join payout_requests r on r.id = i.request_id
        where i.run_id = new.id
          and case new.kind when 'pay' then r.status = 'open' or r.id is null and new.stopped_at is null else i.resend_result is null and new.stopped_at is null end) then
    raise exception 'items of payout run % are not settled', new.id using errcode = 'integrity_constraint_violation';
  end if;
  if old.status = 'approved' and new.status = 'settled' and not (
       select (coalesce(sum(f.row_count), 0), coalesce(sum(f.total_cents), 0)) = (new.paid_count, new.paid_cents)
         from payout_run_files f where f.run_id = new.id) then
    raise exception 'the files of payout run % do not have what was paid', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;

-- An item gets its request once, of its creator and total, and only in an approved run. The draft writes all items. An item of a resend run
-- gets its result instead: it is sent again only while the money is stated to have come back, and to the latest payee.
create or replace function payout_run_item_change() returns trigger language plpgsql as $$
declare
  run payout_runs;
begin
  select * into run from payout_runs where id = new.run_id for share;
  if tg_op = 'INSERT' then
    if run.status <> 'draft' or run.created_at <> now() or new.request_id is not null or new.resend_result is not null then
      raise exception 'payout run % is not being drafted', new.run_id using errcode = 'integrity_constraint_violation';
    end if;
    if (run.kind = 'resend') <> (new.payout_id is not null)
       or new.payout_id is not null and not exists (
            select from payouts p where p.id = new.payout_id and p.affiliate_id = new.affiliate_id and p.total_cents = new.expected_cents) then
      raise exception 'item % of a payout run is not what the run pays', new.id using errcode = 'integrity_constraint_violation';
    end if;
    return new;
  end if;
  if run.status <> 'approved' or old.request_id is not null or old.resend_result is not null
     or (old.id, old.app_id, old.run_id, old.affiliate_id, old.affiliate_name, old.position, old.expected_cents, old.method, old.payee_version, old.payout_id)
          is distinct from
        (new.id, new.app_id, new.run_id, new.affiliate_id, new.affiliate_name, new.position, new.expected_cents, new.method, new.payee_version, new.payout_id)
     or run.kind = 'pay' and not exists (
          select from payout_requests r
           where r.id = new.request_id and r.affiliate_id = new.affiliate_id and r.expected_total_cents = new.expected_cents)
     or run.kind = 'resend' and new.resend_result is null then
    raise exception 'item % of a payout run does not change this way', old.id using errcode = 'integrity_constraint_violation';
  end if;
  if new.resend_result = 'resent' then
    perform from payouts p where p.id = new.payout_id for no key update;
  end if;
  if new.resend_result = 'resent'
     and (not exists (
            select from money_of_payout(new.payout_id) m
             where m.transfer_position = new.return_position and m.transfer_state = 'returned')
          or new.payee_version is distinct from (
            select max(y.version) from payees y where y.app_id = new.app_id and y.affiliate_id = new.affiliate_id)) then
    raise exception 'the money of item % of a payout run is not to be sent again to its payee', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
