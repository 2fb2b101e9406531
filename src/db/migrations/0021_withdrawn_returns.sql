-- A return that was stated by mistake can be withdrawn: the money counts as sent again. Both checks only allow more than before.
alter table payout_transfers
  drop constraint payout_transfers_state_check,
  add constraint payout_transfers_state_check
    check (state in ('sent', 'returned', 'withdrawn', 'return_withdrawn')) not valid,
  drop constraint transfer_state_is_possible,
  add constraint transfer_state_is_possible check
    (case state when 'sent' then coalesce(previous_state, 'withdrawn') in ('returned', 'withdrawn')
                when 'return_withdrawn' then coalesce(previous_state, '') = 'returned'
                else coalesce(previous_state, '') in ('sent', 'return_withdrawn') end) not valid;
