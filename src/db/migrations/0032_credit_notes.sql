-- When a refund was made: a running total of its charge contains it, if it was stated later.
-- A credit note may return money outside the provider. The check only allows more than before.
alter table adjustments
  add column made_at timestamptz,
  drop constraint adjustments_kind_check,
  add constraint adjustments_kind_check
    check (kind in ('refund', 'chargeback', 'chargeback_warning', 'out_of_band', 'credit_note')) not valid;
