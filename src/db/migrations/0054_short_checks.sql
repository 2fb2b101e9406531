-- Functions instead of long checks, as with `has_its_policy`: three writes of a delivery read those of events and commissions.
create function is_event_kind(kind text) returns boolean language plpgsql immutable parallel safe as $$
begin
  return kind in ('purchase', 'renewal', 'trial_started', 'trial_converted', 'product_change', 'cancellation', 'expiration', 'refund',
                  'refund_reversed', 'chargeback', 'chargeback_reversed', 'transfer', 'test', 'other');
end $$;

create function is_likely_cause(cause text) returns boolean language plpgsql immutable parallel safe as $$
begin
  return cause in ('missing_user_id', 'anonymous_user_id', 'user_never_identified', 'user_id_mismatch', 'user_not_attributed',
                   'outside_attribution_window', 'affiliate_paused', 'affiliate_removed', 'rate_zero', 'missing_exchange_rate',
                   'price_unknown', 'processing', 'test_key_only', 'no_policy_rule', 'ambiguous_code');
end $$;

create function has_parts_as_components(e events) returns boolean language plpgsql immutable parallel safe as $$
begin
  return num_nonnulls(e.tax_minor, e.tax_ppm, e.store_fee_minor, e.store_fee_ppm) = 0
      or (num_nonnulls(e.tax_minor, e.tax_ppm) <= 1 and num_nonnulls(e.store_fee_minor, e.store_fee_ppm) <= 1
          and num_nulls(e.payment_ref, e.amount_minor) = 0
          and coalesce(e.tax_minor between 0 and e.amount_minor, true) and coalesce(e.store_fee_minor between 0 and e.amount_minor, true)
          and coalesce(e.tax_ppm between 0 and 1000000, true) and coalesce(e.store_fee_ppm between 0 and 1000000, true));
end $$;

create function is_of_payment_or_entry(c commissions) returns boolean language plpgsql immutable parallel safe as $$
begin
  if c.entry_id is null then
    return num_nulls(c.event_id, c.payment_id, c.binding_id, c.source, c.customer_user_id, c.match_method) = 0;
  end if;
  return num_nonnulls(c.event_id, c.payment_id, c.binding_id, c.source, c.customer_user_id, c.match_method, c.link_id, c.reprocess_run_id,
                      c.rate_source) = 0
     and c.rate_bps = 0 and c.base_cents = 0;
end $$;

alter table events
  drop constraint events_kind_check,
  add constraint events_kind_check check (is_event_kind(kind)) not valid,
  drop constraint events_likely_cause_check,
  add constraint events_likely_cause_check check (is_likely_cause(likely_cause)) not valid,
  drop constraint components_are_parts_of_the_payment,
  add constraint components_are_parts_of_the_payment check (has_parts_as_components(events)) not valid;

alter table commissions
  drop constraint only_entry_has_no_payment,
  add constraint only_entry_has_no_payment check (is_of_payment_or_entry(commissions)) not valid;
