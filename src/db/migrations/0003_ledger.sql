-- The ledger: commissions, revenue and payouts, the reprocess runs that append to it, and idempotency keys.

---------------------------------------------------------------------------------------------------------------------
-- Reprocess runs
-- Stored deliveries that are processed again with the current code (src/db/reprocess.ts, docs/reprocess.md).

-- A request of the operator to process stored deliveries again. The workflow receives only the id. Rows are never deleted:
-- they show why money was appended long after its event.
create table reprocess_runs (
  id          reprocess_run_id primary key,
  app_id      app_id not null references apps (id),
  dry_run     boolean not null,
  -- The deliveries: this one, or those received in [from_at, to_at).
  delivery_id delivery_id,
  from_at     timestamptz not null,
  to_at       timestamptz not null,
  deliveries  integer not null check (deliveries >= 0),
  -- Progress: the last delivery that was examined, then how many deliveries were examined (seen), differ (changed), and
  -- had something appended (applied).
  last_received_at timestamptz,
  last_delivery_id delivery_id,
  seen        integer not null default 0,
  changed     integer not null default 0,
  applied     integer not null default 0,
  -- Why the last attempt at a page failed. Null after a success.
  last_error  text,
  created_at  timestamptz not null default now(),
  relayed_at  timestamptz,
  finished_at timestamptz,
  -- Whether the run was cancelled. It still completes the page that it has begun.
  cancelled   boolean not null default false,
  unique (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  check ((last_received_at is null) = (last_delivery_id is null))
);
create index reprocess_runs_open on reprocess_runs ((coalesce(relayed_at, created_at))) where finished_at is null;

-- The plan for one delivery: what processing it again would change. Stored before any of it is applied.
create table reprocess_changes (
  app_id      app_id not null,
  reprocess_run_id reprocess_run_id not null,
  delivery_id delivery_id not null,
  received_at timestamptz not null,
  changes     jsonb not null check (jsonb_array_length(changes) > 0),
  -- Whether the plan appends anything. Otherwise it only reports differences.
  appends     boolean not null,
  applied_at  timestamptz,
  -- Why the plan failed although its dry run succeeded.
  refusal     text,
  primary key (reprocess_run_id, delivery_id),
  foreign key (app_id, reprocess_run_id) references reprocess_runs (app_id, id),
  foreign key (app_id, delivery_id) references deliveries (app_id, id),
  check (applied_at is null or appends)
);
create index reprocess_changes_in_order on reprocess_changes (reprocess_run_id, received_at, delivery_id);

-- The names (event, payments, user keys, users) that a delivery with an appending plan requires. Where `provides` is true,
-- the delivery also provides the name, and later deliveries that require it depend on this one.
create table reprocess_names (
  reprocess_run_id reprocess_run_id not null,
  delivery_id delivery_id not null,
  name        text not null,
  provides    boolean not null,
  primary key (reprocess_run_id, delivery_id, name),
  foreign key (reprocess_run_id, delivery_id) references reprocess_changes (reprocess_run_id, delivery_id)
);
create index reprocess_names_provided on reprocess_names (reprocess_run_id, name, delivery_id) where provides;

create function guard_reprocess_change() returns trigger language plpgsql as $$
begin
  raise exception 'the plans of reprocess run % are never edited', old.reprocess_run_id
    using errcode = 'integrity_constraint_violation';
end $$;
create trigger reprocess_changes_guard before update of changes, appends on reprocess_changes
  for each row execute function guard_reprocess_change();
create trigger reprocess_changes_no_delete before delete or truncate on reprocess_changes
  for each statement execute function forbid_change();
create trigger reprocess_runs_no_delete before delete or truncate on reprocess_runs
  for each statement execute function forbid_change();

---------------------------------------------------------------------------------------------------------------------
-- Commissions, payouts and revenue

create table payouts (
  id             payout_id primary key,
  app_id         app_id not null,
  affiliate_id   affiliate_id not null,
  affiliate_name text not null,
  item_count     integer not null check (item_count > 0),
  total_cents    cents not null check (total_cents > 0),
  created_at     timestamptz not null default now(),
  -- The CSV as it was first returned, compressed with gzip, and the SHA-256 of its uncompressed bytes.
  csv_gzip       bytea,
  csv_sha256     bytea check (length(csv_sha256) = 32),
  unique (app_id, id),
  unique (app_id, affiliate_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  constraint csv_has_its_hash check ((csv_gzip is null) = (csv_sha256 is null))
);
-- It is compressed already.
alter table payouts alter column csv_gzip set storage external;
create index payouts_by_created on payouts (app_id, created_at desc, id desc);
create index payouts_by_affiliate on payouts (app_id, affiliate_id, created_at desc, id desc);

-- An earning is one row. A refund or dispute appends a reversal; undoing the refund appends a positive one. A correction takes
-- back what is left of an earning whose payment earned under another reference, too.
create table commissions (
  id               commission_id primary key,
  app_id           app_id not null,
  affiliate_id     affiliate_id not null,
  link_id          link_id,
  event_id         event_id not null,
  payment_id       payment_id not null,
  -- Always production. With the foreign key to payments, it keeps sandbox money out of the ledger.
  environment      environment not null default 'production' check (environment = 'production'),
  binding_id       binding_id not null,
  adjustment_id    adjustment_id,
  kind             text not null check (kind in ('earning', 'reversal', 'correction')),
  -- The earning that a reversal or a correction takes back.
  reverses_commission_id commission_id,
  -- Why a correction was necessary, and the earning of the same payment that stays.
  reason           text check (reason in ('earned_under_another_reference')),
  duplicate_of_commission_id commission_id,
  status           text not null default 'pending' check (status in ('pending', 'matured', 'paid')),
  rate_bps         rate_bps not null check (rate_bps > 0),
  -- Where the rate came from, for explanations.
  rate_source      text check (rate_source in ('affiliate', 'app')),
  base_cents       cents not null,
  amount_cents     cents not null check (amount_cents <> 0),
  source           provider not null,
  customer_user_id text not null,
  match_method     text not null,
  occurred_at      timestamptz not null,
  due_at           timestamptz not null,
  matured_at       timestamptz,
  paid_at          timestamptz,
  payout_id        payout_id,
  created_at       timestamptz not null default now(),
  -- The reprocess run that wrote the row. Null for rows of live processing.
  reprocess_run_id reprocess_run_id,
  unique (app_id, id),
  unique (app_id, affiliate_id, id, amount_cents),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, event_id) references events (app_id, id),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment),
  foreign key (app_id, binding_id) references bindings (app_id, id),
  foreign key (app_id, adjustment_id) references adjustments (app_id, id),
  foreign key (app_id, reverses_commission_id) references commissions (app_id, id),
  foreign key (app_id, duplicate_of_commission_id) references commissions (app_id, id),
  foreign key (app_id, affiliate_id, payout_id) references payouts (app_id, affiliate_id, id),
  foreign key (app_id, reprocess_run_id) references reprocess_runs (app_id, id),
  constraint earning_is_positive check (kind <> 'earning' or amount_cents > 0),
  constraint correction_is_negative check (kind <> 'correction' or amount_cents < 0),
  constraint reversal_names_earning check
    ((kind <> 'earning') = (reverses_commission_id is not null) and (kind = 'reversal') = (adjustment_id is not null)),
  constraint correction_has_cause check
    ((kind = 'correction') = (reason is not null) and (kind = 'correction') = (duplicate_of_commission_id is not null)),
  constraint paid_means_in_a_payout check
    ((status = 'paid') = (payout_id is not null) and (status = 'paid') = (paid_at is not null)),
  constraint matured_has_time check ((status = 'pending') = (matured_at is null))
);
create unique index one_earning_per_payment on commissions (payment_id) where kind = 'earning';
create unique index one_earning_per_event on commissions (event_id) where kind = 'earning';
create unique index one_correction_per_earning on commissions (reverses_commission_id) where kind = 'correction';
create index commissions_by_payment on commissions (payment_id);
create index commissions_by_event on commissions (event_id);
create index commissions_by_occurred on commissions (app_id, occurred_at desc, id desc);
create index commissions_by_affiliate on commissions (app_id, affiliate_id, occurred_at desc, id desc);
create index commissions_by_status on commissions (app_id, status, occurred_at desc, id desc);
create index commissions_by_link on commissions (app_id, link_id, occurred_at desc, id desc) where link_id is not null;
create index commissions_by_kind on commissions (app_id, kind, occurred_at desc, id desc) where kind <> 'earning';
create index commissions_by_affiliate_status on commissions (app_id, affiliate_id, status, occurred_at desc, id desc);
-- For exports, for previews, and for the sweep that matures commissions.
create index commissions_unpaid on commissions (app_id, affiliate_id, due_at) where status <> 'paid';
-- What is overdue for an app, and for one affiliate, is summed from the index alone.
create index commissions_pending_by_app on commissions (app_id, due_at) include (affiliate_id, amount_cents)
  where status = 'pending';
create index commissions_pending_by_affiliate on commissions (app_id, affiliate_id, due_at) include (amount_cents)
  where status = 'pending';
create index commissions_pending on commissions (due_at) where status = 'pending';
create index commissions_next_due on commissions (app_id, affiliate_id, due_at, id) where status <> 'paid' and amount_cents > 0;
create index commissions_unpaid_deductions on commissions (app_id, affiliate_id, due_at, id)
  where status <> 'paid' and amount_cents < 0;
-- For the preview of an earlier instant: what became owed, and is not paid yet or was paid by a payout.
create index commissions_matured_since on commissions (app_id, (greatest(due_at, created_at))) where status = 'matured';
create index commissions_paid_since on commissions (payout_id, (greatest(due_at, created_at))) where payout_id is not null;
create index commissions_by_reprocess_run on commissions (reprocess_run_id, id) where reprocess_run_id is not null;

-- Attributed revenue, signed like the ledger: one row when a payment is attributed, negative rows for refunds and disputes.
create table revenue_entries (
  payment_id    payment_id not null,
  position      integer not null,
  app_id        app_id not null,
  environment   environment not null default 'production' check (environment = 'production'),
  affiliate_id  affiliate_id not null,
  link_id       link_id,
  adjustment_id adjustment_id,
  amount_cents  cents not null check (amount_cents <> 0),
  occurred_at   timestamptz not null,
  -- The reprocess run that wrote the row. Null for rows of live processing.
  reprocess_run_id reprocess_run_id,
  primary key (payment_id, position),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id),
  foreign key (app_id, adjustment_id) references adjustments (app_id, id),
  foreign key (app_id, reprocess_run_id) references reprocess_runs (app_id, id)
);
create index revenue_entries_by_reprocess_run on revenue_entries (reprocess_run_id) where reprocess_run_id is not null;

---------------------------------------------------------------------------------------------------------------------
-- Items of payouts, and the requests that lead to payouts

create table payout_items (
  payout_id     payout_id not null,
  commission_id commission_id primary key,
  app_id        app_id not null,
  affiliate_id  affiliate_id not null,
  amount_cents  cents not null,
  position      integer not null check (position > 0),
  unique (payout_id, position),
  foreign key (app_id, affiliate_id, payout_id) references payouts (app_id, affiliate_id, id),
  foreign key (app_id, affiliate_id, commission_id, amount_cents)
    references commissions (app_id, affiliate_id, id, amount_cents)
);

-- Written by an authorized call. The payout workflow receives only the id.
create table payout_requests (
  id              payout_request_id primary key,
  app_id          app_id not null,
  affiliate_id    affiliate_id not null,
  account_id      account_id not null references accounts (id),
  key_id          key_id not null references account_keys (id),
  idempotency_key text check (length(idempotency_key) between 1 and 255),
  expected_total_cents cents,
  -- open → paid | empty (nothing due) | total_changed | closed (the caller stopped waiting before it was settled)
  status          text not null default 'open' check (status in ('open', 'paid', 'empty', 'total_changed', 'closed')),
  payout_id       payout_id,
  net_cents       cents,
  -- Whether earnings remain due that the payout had no room for.
  more_due        boolean not null default false,
  created_at      timestamptz not null default now(),
  -- After this time the request is never paid: the caller received a response that says so.
  expires_at      timestamptz not null,
  settled_at      timestamptz,
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, payout_id) references payouts (app_id, affiliate_id, id),
  check ((status = 'open') = (settled_at is null)),
  check ((status = 'paid') = (payout_id is not null))
);
create unique index payout_requests_idempotency on payout_requests (account_id, idempotency_key)
  where idempotency_key is not null;
create unique index payout_requests_payout on payout_requests (payout_id) where payout_id is not null;
create index payout_requests_open on payout_requests (expires_at) where status = 'open';

---------------------------------------------------------------------------------------------------------------------
-- Rules of the ledger that a constraint on one row cannot state

-- The contents of a commission are fixed when it is inserted. Only its status changes, from pending to matured to paid.
create function guard_commission_update() returns trigger language plpgsql as $$
declare
  edited commissions := new;
begin
  if old.status = 'paid' then
    raise exception 'commission % is paid and cannot be changed', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  if old.status = 'matured' and new.status = 'pending' then
    raise exception 'commission % has matured and cannot become pending again', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  edited.status := old.status;
  edited.matured_at := old.matured_at;
  edited.paid_at := old.paid_at;
  edited.payout_id := old.payout_id;
  if edited is distinct from old then
    raise exception 'commission % cannot be edited: append a reversal', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger commissions_guard before update on commissions for each row execute function guard_commission_update();

create function guard_commission_insert() returns trigger language plpgsql as $$
begin
  raise exception 'a new commission must be pending' using errcode = 'integrity_constraint_violation';
end $$;
create trigger commissions_begin_pending before insert on commissions
  for each row when (new.status <> 'pending') execute function guard_commission_insert();

create trigger commissions_no_delete before delete or truncate on commissions
  for each statement execute function forbid_change();
create trigger payout_items_append_only before update or delete or truncate on payout_items
  for each statement execute function forbid_change();
create trigger payouts_no_delete before delete or truncate on payouts
  for each statement execute function forbid_change();
create trigger revenue_entries_append_only before update or delete or truncate on revenue_entries
  for each statement execute function forbid_change();

create function guard_payout_update() returns trigger language plpgsql as $$
begin
  if (old.csv_sha256 is not null and (old.csv_sha256, old.csv_gzip) is distinct from (new.csv_sha256, new.csv_gzip))
     or (old.id, old.app_id, old.affiliate_id, old.affiliate_name, old.item_count, old.total_cents, old.created_at)
        is distinct from
        (new.id, new.app_id, new.affiliate_id, new.affiliate_name, new.item_count, new.total_cents, new.created_at) then
    raise exception 'payout % cannot be edited', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payouts_guard before update on payouts for each row execute function guard_payout_update();

-- The total of a payout is the sum of its items. Checked at commit.
create function check_payout_sum() returns trigger language plpgsql as $$
declare
  total bigint;
  items integer;
begin
  -- Joined by the commission alone: a look-up by payout would read all its commissions for each item.
  select coalesce(sum(i.amount_cents) filter (where c.payout_id = i.payout_id), 0),
         count(*) filter (where c.payout_id = i.payout_id)
    into total, items
    from payout_items i join commissions c on c.id = i.commission_id
   where i.payout_id = new.id;
  if total <> new.total_cents or items <> new.item_count then
    raise exception 'payout % states % cents in % items, but its paid items are % cents in % items',
      new.id, new.total_cents, new.item_count, total, items
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create constraint trigger payouts_sum after insert on payouts deferrable initially deferred
  for each row execute function check_payout_sum();

-- A hash chain over the payouts of an app, in the order in which their CSVs were stored. Each hash covers the one before, so
-- anyone who keeps a later hash can prove that no payout before it was changed, removed or inserted (docs/payout-proofs.md).
create function payout_chain_hash(previous_hash bytea, of_app app_id, at_position integer, of_payout payout_id,
                                  total_cents cents, csv_sha256 bytea)
returns bytea language sql immutable parallel safe as $$
  select sha256(convert_to(coalesce(encode(previous_hash, 'hex'), '') || E'\n' || of_app || E'\n' || at_position || E'\n'
                           || of_payout || E'\n' || total_cents || E'\n' || encode(csv_sha256, 'hex') || E'\n', 'UTF8'))
$$;
create table payout_chain (
  app_id            app_id not null,
  position          integer not null check (position > 0),
  payout_id         payout_id not null unique,
  total_cents       cents not null,
  csv_sha256        bytea not null check (length(csv_sha256) = 32),
  -- Null for the first payout of an app.
  previous_position integer check (previous_position = position - 1),
  previous_hash     bytea,
  hash              bytea not null,
  primary key (app_id, position),
  unique (app_id, position, hash),
  foreign key (app_id, payout_id) references payouts (app_id, id),
  foreign key (app_id, previous_position, previous_hash) references payout_chain (app_id, position, hash)
    deferrable initially deferred,
  constraint chain_has_previous check
    ((position = 1) = (previous_hash is null) and (position = 1) = (previous_position is null)),
  constraint chain_hash_is_right check
    (hash = payout_chain_hash(previous_hash, app_id, position, payout_id, total_cents, csv_sha256))
);
create trigger payout_chain_append_only before update or delete or truncate on payout_chain
  for each statement execute function forbid_change();

-- Two payouts of an app wait for each other here, and the second one sees the first.
create function append_to_payout_chain() returns trigger language plpgsql as $$
declare
  last payout_chain;
  next integer;
begin
  perform from apps where id = new.app_id for no key update;
  select * into last from payout_chain where app_id = new.app_id order by position desc limit 1;
  next := coalesce(last.position, 0) + 1;
  insert into payout_chain (app_id, position, payout_id, total_cents, csv_sha256, previous_position, previous_hash, hash)
  values (new.app_id, next, new.id, new.total_cents, new.csv_sha256, last.position, last.hash,
          payout_chain_hash(last.hash, new.app_id, next, new.id, new.total_cents, new.csv_sha256));
  return null;
end $$;
create trigger payouts_append_to_chain after update of csv_sha256 on payouts
  for each row when (old.csv_sha256 is null and new.csv_sha256 is not null) execute function append_to_payout_chain();

-- Items are inserted in the transaction of their payout, never later.
create function check_items_come_with_payout() returns trigger language plpgsql as $$
begin
  if exists (select from added i join payouts p on p.id = i.payout_id where p.created_at <> now()) then
    raise exception 'items cannot be added to an existing payout' using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create trigger payout_items_come_with_payout after insert on payout_items referencing new table as added
  for each statement execute function check_items_come_with_payout();

-- A paid commission is an item of the payout that it references. Checked after each statement.
create function check_paid_has_item() returns trigger language plpgsql as $$
begin
  if exists (
    select from commissions_after c
     where c.status = 'paid'
       and not exists (select from payout_items i where i.commission_id = c.id and i.payout_id = c.payout_id)
  ) then
    raise exception 'a paid commission must be an item of its payout'
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create trigger commissions_paid_has_item after update on commissions
  referencing new table as commissions_after for each statement execute function check_paid_has_item();

-- The payment holds the sums of its earnings and reversals, where a check constraint compares them.
create function add_to_payment() returns trigger language plpgsql as $$
begin
  update payments p
     set earned_cents = p.earned_cents + case when new.kind = 'earning' then new.amount_cents else 0 end,
         reversed_cents = p.reversed_cents - case when new.kind = 'reversal' then new.amount_cents else 0 end,
         corrected_cents = p.corrected_cents - case when new.kind = 'correction' then new.amount_cents else 0 end
   where p.id = new.payment_id;
  return null;
end $$;
create trigger commissions_add_to_payment after insert on commissions for each row execute function add_to_payment();

-- Only the trigger above may change these sums.
create function guard_payment_sums() returns trigger language plpgsql as $$
begin
  if pg_trigger_depth() < 2 then
    raise exception 'the sums of payment % cannot be changed: they follow its commissions', old.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payments_guard_sums before update on payments for each row
  when (old.earned_cents <> new.earned_cents or old.reversed_cents <> new.reversed_cents
        or old.corrected_cents <> new.corrected_cents)
  execute function guard_payment_sums();

-- A reversal or correction has the payment, affiliate, rate and due date of its earning, so that both net in one payout.
create function check_reversal() returns trigger language plpgsql as $$
begin
  if not exists (
    select from commissions e
     where e.id = new.reverses_commission_id and e.kind = 'earning' and e.payment_id = new.payment_id
       and e.affiliate_id = new.affiliate_id and e.rate_bps = new.rate_bps and e.due_at = new.due_at
  ) then
    raise exception '% % differs from its earning in payment, affiliate, rate or due date', new.kind, new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create constraint trigger commissions_check_reversal after insert on commissions
  for each row when (new.kind <> 'earning') execute function check_reversal();

-- The cause of a correction is an earlier earning of the same payment under another reference. Nothing of the corrected
-- earning remains.
create function check_correction() returns trigger language plpgsql as $$
begin
  if not exists (
    select from commissions k
      join payments kept on kept.id = k.payment_id
      join payments p on p.id = new.payment_id
     where k.id = new.duplicate_of_commission_id and k.kind = 'earning' and k.id < new.reverses_commission_id
       and kept.id <> p.id and kept.app_id = p.app_id and kept.environment = p.environment and kept.store = p.store
       and p.earned_cents = p.reversed_cents + p.corrected_cents
       and kept.ref in (select ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]))
  ) then
    raise exception 'correction % needs an earlier earning of the same payment, and must take back the rest of its own', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;
create constraint trigger commissions_check_correction after insert on commissions deferrable initially deferred
  for each row when (new.kind = 'correction') execute function check_correction();

---------------------------------------------------------------------------------------------------------------------
-- Idempotency keys

-- The response to a call with an Idempotency-Key, for 24 hours. The row is inserted before the call does anything, and holds
-- the seed of all ids and keys that the call generates. So a call that was interrupted runs again with the same result.
create table idempotency_keys (
  account_id      account_id not null references accounts (id),
  idempotency_key text not null check (length(idempotency_key) between 1 and 255),
  -- Hash of method, path, query and body.
  request_sha256  bytea not null check (length(request_sha256) = 32),
  requested_at    timestamptz not null,
  -- Encrypted as in webhook_secrets. Ids and new keys are derived from it.
  seed            bytea not null,
  seed_key_id     text not null,
  -- The process that runs the call, and until when no other process may run it.
  claim_id        uuid not null,
  claimed_until   timestamptz not null,
  -- Status, headers and body, encrypted because a body may contain a key. Null until the call is complete.
  response        bytea,
  response_key_id text,
  expires_at      timestamptz not null,
  primary key (account_id, idempotency_key),
  check ((response is null) = (response_key_id is null))
);
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- How far the removal of expired data has come. src/db/retention.ts writes it.
create table retention_progress (
  kind        text primary key
              check (kind in ('idempotency_keys', 'identities', 'refused_counters', 'user_agents', 'bodies')),
  -- Rows removed or cleared since the installation.
  removed     bigint not null default 0,
  -- The last click whose User-Agent was examined. Null for other kinds.
  position    click_id,
  -- When nothing was left to remove.
  finished_at timestamptz
);
