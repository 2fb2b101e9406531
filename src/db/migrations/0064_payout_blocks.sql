-- A founder stops the payouts of a creator, for example while sales are reviewed. Earning goes on, and exports pay nothing until the block is
-- lifted. Blocks and their ends are facts with their author and a reason.
create domain payout_block_id as text collate "C" check (value ~ '^pbk_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table payout_blocks (
  id           payout_block_id not null unique,
  app_id       app_id not null,
  affiliate_id affiliate_id not null,
  position     integer not null check (position >= 1),
  previous     integer generated always as (nullif(position - 1, 0)) stored,
  -- In turn, and a block comes first.
  state        text collate "C" not null generated always as (case position % 2 when 1 then 'blocked' else 'lifted' end) stored,
  reason       text not null check (length(reason) between 1 and 500),
  account_id   account_id not null,
  key_id       key_id not null,
  created_at   timestamptz not null default now(),
  primary key (affiliate_id, position),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (affiliate_id, previous) references payout_blocks (affiliate_id, position),
  foreign key (account_id, key_id) references account_keys (account_id, id)
);
create index payout_blocks_by_created on payout_blocks (app_id, affiliate_id, created_at desc, id desc);
create trigger payout_blocks_append_only before update or delete or truncate on payout_blocks
  for each statement execute function forbid_change();
create trigger payout_blocks_audit after insert on payout_blocks for each row execute function
  write_audit_row('payout_block', 'id', 'affiliate_id state reason!');

-- One settlement of a creator runs at a time, under this lock: a block that was committed before the settlement began is seen.
create function lock_payouts_of_creator() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('payout of ' || new.affiliate_id::text, 0));
  return new;
end $$;
create trigger payout_blocks_lock before insert on payout_blocks for each row execute function lock_payouts_of_creator();

create function are_payouts_blocked(of_creator text) returns boolean language sql stable parallel safe as $$
  select coalesce((select state = 'blocked' from payout_blocks where affiliate_id = of_creator order by position desc limit 1), false)
$$;

-- Holds for every process, also one of an earlier version. What was paid before the block may be recorded from its file.
create function require_payable_creator() returns trigger language plpgsql as $$
begin
  if are_payouts_blocked(new.affiliate_id) then
    raise exception 'payouts of % are blocked', new.affiliate_id
      using errcode = 'object_not_in_prerequisite_state', hint = 'lift the block first';
  end if;
  return new;
end $$;
create trigger payouts_payable_creator before insert on payouts
  for each row when (new.recorded_at is null) execute function require_payable_creator();

alter table payout_requests
  drop constraint payout_requests_status_check,
  add constraint payout_requests_status_check
    check (status in ('open', 'paid', 'empty', 'total_changed', 'blocked', 'closed')) not valid;
