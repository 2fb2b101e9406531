-- Money that a person adds or deducts: a bonus, a fixed fee, a refund that no provider reported. An entry is a fact with its author and
-- exactly one commission. It is never edited: an opposite entry undoes it, once. All checks of commissions only allow more than before.
create domain entry_id as text collate "C" check (value ~ '^ent_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table entries (
  id              entry_id primary key,
  app_id          app_id not null,
  affiliate_id    affiliate_id not null,
  category        text collate "C" not null
                  check (category in ('bonus', 'fixed_fee', 'unreported_refund', 'opening_balance', 'write_off', 'other')),
  amount_cents    cents not null check (amount_cents <> 0),
  reason          text not null check (length(reason) between 1 and 500),
  -- The caller's id. Without it, only an undo, which is possible once.
  external_id     text collate "C" check (length(external_id) between 1 and 200),
  undoes_entry_id entry_id unique,
  due_at          timestamptz not null,
  account_id      account_id not null,
  key_id          key_id not null,
  created_at      timestamptz not null default now(),
  constraint all_but_undos_have_an_external_id check ((undoes_entry_id is null) = (external_id is not null)),
  -- An undo has the category of its entry, and the opposite sign.
  constraint category_has_its_sign check
    (undoes_entry_id is not null
     or case category when 'bonus' then amount_cents > 0 when 'fixed_fee' then amount_cents > 0
                      when 'unreported_refund' then amount_cents < 0 else true end),
  unique (app_id, id),
  unique (app_id, external_id),
  unique (app_id, affiliate_id, id, amount_cents, due_at),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (account_id, key_id) references account_keys (account_id, id),
  foreign key (app_id, undoes_entry_id) references entries (app_id, id)
);
create index entries_by_app on entries (app_id, created_at desc, id desc);
create index entries_by_affiliate on entries (app_id, affiliate_id, created_at desc, id desc);
create trigger entries_append_only before update or delete or truncate on entries
  for each statement execute function forbid_change();
create trigger entries_audit after insert on entries for each row execute function
  write_audit_row('entry', 'id', 'affiliate_id category amount_cents reason! external_id undoes_entry_id due_at');

-- Both are due at the same time, so that one payout has both.
create function check_undo() returns trigger language plpgsql as $$
begin
  if not exists (
    select from entries e
     where e.id = new.undoes_entry_id and e.app_id = new.app_id and e.affiliate_id = new.affiliate_id
       and e.category = new.category and e.amount_cents = -new.amount_cents and e.due_at = new.due_at and e.undoes_entry_id is null
  ) then
    raise exception 'entry % is not the opposite of the entry that it undoes, or that one undoes another', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create trigger entries_check_undo after insert on entries
  for each row when (new.undoes_entry_id is not null) execute function check_undo();

-- A column of a domain would rewrite the table; the foreign key has the same effect.
alter table commissions
  add column entry_id text collate "C",
  alter column event_id drop not null,
  alter column payment_id drop not null,
  alter column binding_id drop not null,
  alter column source drop not null,
  alter column customer_user_id drop not null,
  alter column match_method drop not null,
  drop constraint commissions_kind_check,
  add constraint commissions_kind_check
    check (kind in ('earning', 'reversal', 'correction', 'bonus', 'deduction')) not valid,
  drop constraint commissions_rate_bps_check,
  add constraint commissions_rate_bps_check check (rate_bps > 0 or entry_id is not null) not valid,
  drop constraint reversal_names_earning,
  add constraint reversal_names_earning check
    ((kind in ('reversal', 'correction')) = (reverses_commission_id is not null) and (kind = 'reversal') = (adjustment_id is not null))
    not valid,
  add constraint entry_has_its_kind check ((kind in ('bonus', 'deduction')) = (entry_id is not null)) not valid,
  add constraint entry_has_its_sign check
    ((kind <> 'bonus' or amount_cents > 0) and (kind <> 'deduction' or amount_cents < 0)) not valid,
  add constraint only_entry_has_no_payment check
    (case when entry_id is null
          then event_id is not null and payment_id is not null and binding_id is not null and source is not null
               and customer_user_id is not null and match_method is not null
          else event_id is null and payment_id is null and binding_id is null and source is null
               and customer_user_id is null and match_method is null and link_id is null and reprocess_run_id is null
               and rate_bps = 0 and rate_source is null and base_cents = 0 end) not valid,
  add constraint commission_is_that_of_its_entry foreign key (app_id, affiliate_id, entry_id, amount_cents, due_at)
    references entries (app_id, affiliate_id, id, amount_cents, due_at) not valid;

drop trigger commissions_check_reversal on commissions;
create constraint trigger commissions_check_reversal after insert on commissions
  for each row when (new.kind in ('reversal', 'correction')) execute function check_reversal();

create function check_entry_is_booked() returns trigger language plpgsql as $$
begin
  if not exists (select from commissions c where c.entry_id = new.id) then
    raise exception 'entry % has no commission', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create constraint trigger entries_booked after insert on entries deferrable initially deferred
  for each row execute function check_entry_is_booked();

alter table webhook_messages
  drop constraint webhook_messages_type_check,
  add constraint webhook_messages_type_check check
    (type in ('commission.created', 'commission.matured', 'commission.reversed', 'commission.adjusted', 'payout.created',
              'delivery.stuck', 'webhook.test')) not valid;

-- An entry announces itself once, when it is written.
create or replace function announce_commissions() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_endpoints where deactivated_at is null) then
    return null;
  end if;
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  with starts as materialized (
    select a.app_id, left(new_webhook_message_id(), 23) as id_start
      from (select distinct app_id from changed) a
     where exists (select from webhook_endpoints e where e.app_id = a.app_id and e.deactivated_at is null)
  )
  select s.id_start || lpad(to_hex(row_number() over (partition by c.app_id)), 7, '0'), c.app_id, e.id, t.type, c.id,
         jsonb_build_object(
           'commissionId', c.id, 'kind', c.kind, 'affiliateId', c.affiliate_id, 'linkId', c.link_id, 'eventId', c.event_id,
           'reversesCommissionId', c.reverses_commission_id, 'amount', usd_text(c.amount_cents),
           'amountCents', c.amount_cents, 'currency', 'USD', 'rateBps', c.rate_bps,
           'occurredAt', epoch_ms(c.occurred_at), 'dueAt', epoch_ms(c.due_at))
         || coalesce((select jsonb_build_object('entryId', n.id, 'category', n.category, 'reason', n.reason, 'undoesEntryId', n.undoes_entry_id)
                        from entries n where n.id = c.entry_id), '{}')
    from changed c
    join starts s on s.app_id = c.app_id
   cross join lateral (
     select case when tg_op = 'UPDATE' then case when c.entry_id is null then 'commission.matured' end
                 when c.kind = 'earning' then 'commission.created'
                 when c.entry_id is not null then 'commission.adjusted'
                 else 'commission.reversed' end as type) t
    join webhook_endpoints e on e.app_id = c.app_id and e.deactivated_at is null and t.type = any(e.event_types)
   where tg_op = 'INSERT'
      -- The rows of a payout that is recorded from its file matured in another history of the database.
      or c.matured_at = now() and not exists (select from payouts p where p.id = c.payout_id and p.recorded_at is not null)
  on conflict (endpoint_id, type, subject_id) do nothing;
  return null;
end $$;
