-- The refunds of the four weeks before. Those that were written since the trigger exists are there already, and nobody has folded any.
insert into refund_deltas (payment_id, position, app_id, day, amount_cents)
select payment_id, position, app_id, (occurred_at at time zone 'UTC')::date, -amount_cents
  from revenue_entries where adjustment_id is not null and occurred_at > now() - interval '29 days'
on conflict do nothing;

-- Blocks neither reads nor writes.
alter table alerts validate constraint alerts_rule_check;
