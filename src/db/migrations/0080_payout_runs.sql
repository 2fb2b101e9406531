-- A founder pays all creators at once: a draft says who would be paid and who is left out, an approval pays exactly that. Each item is paid
-- by a payout request of its own, whose settlement decides.
create domain payout_run_id as text collate "C" check (value ~ '^run_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain payout_run_item_id as text collate "C" check (value ~ '^pit_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table payout_runs (
  id            payout_run_id primary key,
  app_id        app_id not null references apps (id),
  account_id    account_id not null,
  -- Who drafted it, and who approved it.
  key_id        key_id not null,
  approved_by   key_id,
  -- It pays what was due then, and nothing that became due later.
  as_of         timestamptz not null,
  minimum_cents cents not null check (minimum_cents >= 0),
  -- Whether it pays creators without a payee, too.
  includes_without_payee boolean not null,
  item_count    integer not null check (item_count >= 0),
  total_cents   cents not null check (total_cents >= 0),
  status        text collate "C" not null default 'draft' check (status in ('draft', 'approved', 'settled', 'cancelled')),
  created_at    timestamptz not null default now(),
  -- A draft that nobody approves until then can't be approved any more.
  expires_at    timestamptz not null check (expires_at > created_at),
  approved_at   timestamptz,
  -- The call that approved it, for the audit rows of its payouts.
  actor         jsonb,
  -- No further item is paid.
  stopped_at    timestamptz,
  -- When it was settled or cancelled.
  ended_at      timestamptz,
  -- How many creators it paid, and how much: when it is settled.
  paid_count    integer check (paid_count between 0 and item_count),
  paid_cents    cents check (paid_cents between 0 and total_cents),
  -- When its workflow was started last.
  relayed_at    timestamptz,
  unique (app_id, id),
  foreign key (account_id, key_id) references account_keys (account_id, id),
  foreign key (account_id, approved_by) references account_keys (account_id, id),
  constraint payout_runs_approval check ((status in ('approved', 'settled')) = (approved_at is not null) and (approved_at is null) = (approved_by is null)),
  constraint payout_runs_end check ((status in ('settled', 'cancelled')) = (ended_at is not null)),
  constraint payout_runs_result check ((status = 'settled') = (paid_count is not null) and (paid_count is null) = (paid_cents is null)),
  constraint payout_runs_stop check (stopped_at is null or approved_at is not null)
);
create unique index payout_runs_one_open on payout_runs (app_id) where status in ('draft', 'approved');
create index payout_runs_by_created on payout_runs (app_id, created_at desc, id desc);
create index payout_runs_approved on payout_runs (relayed_at nulls first) where status = 'approved';

create table payout_run_items (
  id             payout_run_item_id primary key,
  app_id         app_id not null,
  run_id         payout_run_id not null,
  affiliate_id   affiliate_id not null,
  -- As of the draft.
  affiliate_name text not null,
  -- From 1, the largest amount first.
  position       integer not null check (position >= 1),
  expected_cents cents not null check (expected_cents > 0),
  -- How the money is sent, and the version of the payee that is in force: the latest one. Null without any.
  method         text collate "C" not null check (method in ('paypal', 'wise', 'other')),
  payee_version  integer check (payee_version is not null or method = 'other'),
  -- Its result is that of the request.
  request_id     payout_request_id unique references payout_requests (id),
  unique (run_id, position),
  unique (run_id, affiliate_id),
  foreign key (app_id, run_id) references payout_runs (app_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, affiliate_id, payee_version) references payees (app_id, affiliate_id, version)
);
create index payout_run_items_waiting on payout_run_items (run_id, position) where request_id is null;

-- Who has unpaid commissions and is not in a run, and why.
create table payout_run_exclusions (
  app_id         app_id not null,
  run_id         payout_run_id not null,
  affiliate_id   affiliate_id not null,
  affiliate_name text not null,
  -- From 1: those with the largest amount that is due first.
  position       integer not null check (position >= 1),
  reason         text collate "C" not null check (reason in ('payouts_blocked', 'payee_changed', 'no_payee', 'below_minimum', 'too_many_commissions', 'negative_balance', 'reversed', 'held')),
  -- The net of what was due, and of what was in the hold period.
  balance_cents  cents not null,
  held_cents     cents not null,
  primary key (run_id, position),
  unique (run_id, affiliate_id),
  foreign key (app_id, run_id) references payout_runs (app_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id)
);
create trigger payout_run_exclusions_append_only before update or truncate on payout_run_exclusions
  for each statement execute function forbid_change();

-- What a payment service is given: the paid items of one method, as the bytes that were written once. Only the service can decrypt them.
create domain payout_file_id as text collate "C" check (value ~ '^pfl_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table payout_run_files (
  id                payout_file_id not null unique,
  app_id            app_id not null,
  run_id            payout_run_id not null,
  method            text collate "C" not null check (method in ('paypal', 'wise', 'other')),
  part              integer not null check (part >= 1),
  row_count         integer not null check (row_count >= 1),
  total_cents       cents not null check (total_cents >= 1),
  -- Of the bytes that a download returns.
  sha256            bytea not null check (length(sha256) = 32),
  -- Null once a creator in it was erased.
  ciphertext        bytea,
  encryption_key_id text collate "C",
  created_at        timestamptz not null default now(),
  primary key (run_id, method, part),
  unique (app_id, id),
  foreign key (app_id, run_id) references payout_runs (app_id, id),
  constraint file_has_its_key check ((ciphertext is null) = (encryption_key_id is null))
);
create index payout_run_files_by_key on payout_run_files (encryption_key_id, id) where encryption_key_id is not null;
create trigger payout_run_files_kept before delete or truncate on payout_run_files for each statement execute function forbid_change();

create function guard_payout_file() returns trigger language plpgsql as $$
declare
  changeable constant text[] := '{ciphertext,encryption_key_id}';
begin
  if to_jsonb(new) - changeable <> to_jsonb(old) - changeable or old.ciphertext is null then
    raise exception 'file % of a payout run cannot be changed', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_run_files_guard before update on payout_run_files for each row execute function guard_payout_file();

-- Who has read a file with the recipients, and when.
create table payout_file_downloads (
  app_id        app_id not null,
  file_id       payout_file_id not null,
  position      integer not null check (position >= 1),
  account_id    account_id not null,
  key_id        key_id not null,
  downloaded_at timestamptz not null default now(),
  primary key (file_id, position),
  foreign key (app_id, file_id) references payout_run_files (app_id, id),
  foreign key (account_id, key_id) references account_keys (account_id, id)
);
create trigger payout_file_downloads_append_only before update or delete or truncate on payout_file_downloads
  for each statement execute function forbid_change();
create trigger payout_file_downloads_audit after insert on payout_file_downloads for each row execute function
  write_audit_row('payout_file_download', 'file_id', 'position');

create trigger payout_runs_audit after insert or update of status, stopped_at on payout_runs for each row
  when (new.status <> 'settled') execute function
  write_audit_row('payout_run', 'id', 'status minimum_cents item_count total_cents approved_by stopped_at');

-- A run goes from draft to approved to settled, or from draft to cancelled, and what was approved never changes.
create function payout_run_transition() returns trigger language plpgsql as $$
begin
  if (old.id, old.app_id, old.account_id, old.key_id, old.as_of, old.minimum_cents, old.includes_without_payee, old.item_count, old.total_cents, old.created_at, old.expires_at)
       is distinct from
     (new.id, new.app_id, new.account_id, new.key_id, new.as_of, new.minimum_cents, new.includes_without_payee, new.item_count, new.total_cents, new.created_at, new.expires_at)
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
        where i.run_id = new.id and (r.status = 'open' or r.id is null and new.stopped_at is null)) then
    raise exception 'items of payout run % are not settled', new.id using errcode = 'integrity_constraint_violation';
  end if;
  if old.status = 'approved' and new.status = 'settled' and not (
       select (coalesce(sum(f.row_count), 0), coalesce(sum(f.total_cents), 0)) = (new.paid_count, new.paid_cents)
         from payout_run_files f where f.run_id = new.id) then
    raise exception 'the files of payout run % do not have what was paid', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_runs_transition before update on payout_runs for each row execute function payout_run_transition();
create trigger payout_runs_kept before delete or truncate on payout_runs for each statement execute function forbid_change();

-- An item gets its request once, of its creator and total, and only in an approved run. The draft writes all items.
create function payout_run_item_change() returns trigger language plpgsql as $$
declare
  run payout_runs;
begin
  select * into run from payout_runs where id = new.run_id for share;
  if tg_op = 'INSERT' then
    if run.status <> 'draft' or run.created_at <> now() or new.request_id is not null then
      raise exception 'payout run % is not being drafted', new.run_id using errcode = 'integrity_constraint_violation';
    end if;
    return new;
  end if;
  if run.status <> 'approved' or old.request_id is not null or new.request_id is null
     or (old.id, old.app_id, old.run_id, old.affiliate_id, old.affiliate_name, old.position, old.expected_cents, old.method, old.payee_version)
          is distinct from
        (new.id, new.app_id, new.run_id, new.affiliate_id, new.affiliate_name, new.position, new.expected_cents, new.method, new.payee_version)
     or not exists (select from payout_requests r
                     where r.id = new.request_id and r.affiliate_id = new.affiliate_id and r.expected_total_cents = new.expected_cents) then
    raise exception 'item % of a payout run does not change this way', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_run_items_change before insert or update on payout_run_items for each row execute function payout_run_item_change();
create trigger payout_run_items_kept before truncate on payout_run_items for each statement execute function forbid_change();

-- The list of a draft that another one replaces is of no use any more.
create function keep_list_of_approved_run() returns trigger language plpgsql as $$
begin
  if exists (select from payout_runs r where r.id = old.run_id and (r.status <> 'cancelled' or r.approved_at is not null)) then
    raise exception 'rows of % cannot be changed or deleted', tg_table_name using errcode = 'integrity_constraint_violation';
  end if;
  return old;
end $$;
create trigger payout_run_items_of_approved before delete on payout_run_items for each row execute function keep_list_of_approved_run();
create trigger payout_run_exclusions_of_approved before delete on payout_run_exclusions for each row execute function keep_list_of_approved_run();

-- A process of an earlier version does not know what a run pays: it fails, and one that knows settles the request. None pays another amount,
-- or a creator whose payee has changed.
create function require_payment_of_run() returns trigger language plpgsql as $$
declare
  item payout_run_items;
begin
  select * into item from payout_run_items i where i.request_id = new.id;
  if not found then
    return new;
  end if;
  if coalesce(current_setting('tributary.settles_runs', true), '') <> 'on' then
    raise exception 'request % is of a payout run, which this process does not know', new.id using errcode = 'object_not_in_prerequisite_state';
  end if;
  if new.status = 'paid'
     and (item.expected_cents <> new.net_cents
          or item.payee_version is distinct from (select max(y.version) from payees y where y.app_id = item.app_id and y.affiliate_id = item.affiliate_id)) then
    raise exception 'request % is of a payout run with another amount or payee', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payout_requests_payment_of_run before update on payout_requests
  for each row when (old.status = 'open' and new.status not in ('open', 'closed')) execute function require_payment_of_run();

alter table payout_requests
  drop constraint payout_requests_status_check,
  add constraint payout_requests_status_check
    check (status in ('open', 'paid', 'empty', 'total_changed', 'blocked', 'payee_changed', 'closed')) not valid;
