-- What became of the money of a payout outside of the service: appended facts that people state, each by the key that stated it.

create domain transfer_id as text collate "C" check (value ~ '^trf_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table payout_transfers (
  id                transfer_id not null unique,
  app_id            app_id not null,
  payout_id         payout_id not null,
  position          integer not null check (position between 1 and 100),
  -- sent: the money left. returned: it came back. withdrawn: the mark before was a mistake.
  state             text collate "C" not null check (state in ('sent', 'returned', 'withdrawn')),
  previous_position integer check (previous_position = position - 1),
  previous_state    text collate "C",
  method            text check (length(method) between 1 and 200),
  reference         text check (length(reference) between 1 and 200),
  note              text check (length(note) between 1 and 1000),
  account_id        account_id not null,
  key_id            key_id not null,
  created_at        timestamptz not null default now(),
  -- Of two concurrent marks, one gets the position.
  primary key (payout_id, position),
  unique (payout_id, position, state),
  foreign key (app_id, payout_id) references payouts (app_id, id),
  foreign key (account_id, key_id) references account_keys (account_id, id),
  foreign key (payout_id, previous_position, previous_state) references payout_transfers (payout_id, position, state),
  constraint transfer_follows_the_one_before check
    ((position = 1) = (previous_position is null) and (position = 1) = (previous_state is null)),
  -- Money that is on its way is not sent again, and only money that was sent comes back.
  constraint transfer_state_is_possible check
    (case state when 'sent' then coalesce(previous_state, 'withdrawn') in ('returned', 'withdrawn')
                else coalesce(previous_state, '') = 'sent' end)
);
create trigger payout_transfers_append_only before update or delete or truncate on payout_transfers
  for each statement execute function forbid_change();
