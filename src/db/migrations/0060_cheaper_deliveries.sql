-- without transaction
-- What a delivery costs in Postgres. The rules of a row are in one function for each table that a delivery writes to: every statement that
-- writes to a table reads the text of its checks anew, which was a fifth of a delivery, and a connection reads a function once. A
-- broken rule fails as a check does, with the name of the rule. They name nothing of a schema: a restored dump checks its rows
-- without a search path. Each statement of this file can run again.
set lock_timeout = '500ms';

create or replace function delivery_is_valid(d deliveries) returns boolean language plpgsql immutable parallel safe as $$
declare
  broken text := case
    when not (length(d.body_sha256) = 32) then 'deliveries_body_sha256_check'
    when not (d.event_count in (0, 1)) then 'deliveries_event_count_check'
    when not (d.processing_status in ('received', 'processing', 'processed', 'duplicate', 'ignored', 'failed', 'rejected'))
      then 'deliveries_processing_status_check'
    when not ((d.completed_at is null) = (d.processing_status in ('received', 'processing'))) then 'only_completed_has_time'
    when not ((d.processing_status = 'rejected') = (not d.signature_valid)) then 'rejected_without_signature'
    when not ((d.processing_status = 'rejected') = (d.refused_hour is not null)) then 'only_rejected_has_hour'
    when not (d.signature_valid = (d.secret_id is not null)) then 'valid_signature_has_secret' end;
begin
  if broken is null then
    return true;
  end if;
  raise check_violation using table = 'deliveries', constraint = broken,
    message = format('new row for relation "deliveries" violates check constraint "%s"', broken);
end $$;

create or replace function event_is_valid(e events) returns boolean language plpgsql immutable parallel safe as $$
declare
  broken text := case
    when not (num_nonnulls(e.tax_minor, e.tax_ppm, e.store_fee_minor, e.store_fee_ppm) = 0
              or (num_nonnulls(e.tax_minor, e.tax_ppm) <= 1 and num_nonnulls(e.store_fee_minor, e.store_fee_ppm) <= 1
                  and num_nulls(e.payment_ref, e.amount_minor) = 0
                  and coalesce(e.tax_minor between 0 and e.amount_minor, true)
                  and coalesce(e.store_fee_minor between 0 and e.amount_minor, true)
                  and coalesce(e.tax_ppm between 0 and 1000000, true) and coalesce(e.store_fee_ppm between 0 and 1000000, true)))
      then 'components_are_parts_of_the_payment'
    when not (e.currency ~ '^[A-Z]{3}$') then 'events_currency_check'
    when not (e.fx_rate > 0) then 'events_fx_rate_check'
    when not (e.fx_units > 0) then 'events_fx_units_check'
    when not (e.fx_worth_usd > 0) then 'events_fx_worth_usd_check'
    when not (e.kind in ('purchase', 'renewal', 'trial_started', 'trial_converted', 'product_change', 'cancellation', 'expiration',
                         'refund', 'refund_reversed', 'chargeback', 'chargeback_reversed', 'transfer', 'test', 'other'))
      then 'events_kind_check'
    when not (e.likely_cause in ('missing_user_id', 'anonymous_user_id', 'user_never_identified', 'user_id_mismatch',
                                 'user_not_attributed', 'outside_attribution_window', 'affiliate_paused', 'affiliate_removed',
                                 'rate_zero', 'missing_exchange_rate', 'price_unknown', 'processing', 'test_key_only',
                                 'no_policy_rule', 'ambiguous_code')) then 'events_likely_cause_check'
    when not (length(e.source_event_id) between 1 and 500) then 'events_source_event_id_check'
    when not (num_nulls(e.fx_rate, e.fx_units, e.fx_worth_usd) in (0, 3)) then 'fx_rate_is_complete' end;
begin
  if broken is null then
    return true;
  end if;
  raise check_violation using table = 'events', constraint = broken,
    message = format('new row for relation "events" violates check constraint "%s"', broken);
end $$;

create or replace function payment_is_valid(p payments) returns boolean language plpgsql immutable parallel safe as $$
declare
  broken text := case
    when not (p.attribution_id is null or p.binding_id is not null) then 'attribution_needs_a_binding'
    when not (p.reversed_cents >= 0 and p.reversed_cents + p.corrected_cents <= p.earned_cents) then 'never_more_reversed_than_earned'
    when not (p.duplicate_of <> p.id) then 'no_duplicate_of_itself'
    when not (p.amount_minor > 0) then 'payments_amount_minor_check'
    when not (p.base_cents >= 0) then 'payments_base_cents_check'
    when not (p.corrected_cents >= 0) then 'payments_corrected_cents_check'
    when not (p.currency ~ '^[A-Z]{3}$') then 'payments_currency_check'
    when not (p.earned_cents >= 0) then 'payments_earned_cents_check'
    when not (p.usd_cents > 0) then 'payments_usd_cents_check' end;
begin
  if broken is null then
    return true;
  end if;
  raise check_violation using table = 'payments', constraint = broken,
    message = format('new row for relation "payments" violates check constraint "%s"', broken);
end $$;

create or replace function commission_is_valid(c commissions) returns boolean language plpgsql immutable parallel safe as $$
declare
  broken text := case
    when not (c.amount_cents <> 0) then 'commissions_amount_cents_check'
    when not (c.environment = 'production') then 'commissions_environment_check'
    when not (c.kind in ('earning', 'reversal', 'correction', 'bonus', 'deduction')) then 'commissions_kind_check'
    when not (c.rate_bps > 0 or coalesce(c.flat_cents, 0) > 0 or c.entry_id is not null) then 'commissions_rate_bps_check'
    when not (c.rate_source in ('affiliate', 'app', 'policy')) then 'commissions_rate_source_check'
    when not (c.reason = 'earned_under_another_reference') then 'commissions_reason_check'
    when not (c.status in ('pending', 'matured', 'paid')) then 'commissions_status_check'
    when not ((c.kind = 'correction') = (c.reason is not null)
              and (c.kind = 'correction') = (c.duplicate_of_commission_id is not null)) then 'correction_has_cause'
    when not (c.kind <> 'correction' or c.amount_cents < 0) then 'correction_is_negative'
    when not (c.kind <> 'earning' or c.amount_cents > 0) then 'earning_is_positive'
    when not ((c.kind in ('bonus', 'deduction')) = (c.entry_id is not null)) then 'entry_has_its_kind'
    when not ((c.kind <> 'bonus' or c.amount_cents > 0) and (c.kind <> 'deduction' or c.amount_cents < 0)) then 'entry_has_its_sign'
    when not ((c.status = 'pending') = (c.matured_at is null)) then 'matured_has_time'
    when not case when c.entry_id is null
                  then num_nulls(c.event_id, c.payment_id, c.binding_id, c.source, c.customer_user_id, c.match_method) = 0
                  else num_nonnulls(c.event_id, c.payment_id, c.binding_id, c.source, c.customer_user_id, c.match_method, c.link_id,
                                    c.reprocess_run_id, c.rate_source) = 0
                       and c.rate_bps = 0 and c.base_cents = 0 end then 'only_entry_has_no_payment'
    when not ((c.status = 'paid') = (c.payout_id is not null) and (c.status = 'paid') = (c.paid_at is not null))
      then 'paid_means_in_a_payout'
    when not case when num_nonnulls(c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated, c.flat_cents, c.policy_inputs) = 0
                  then c.rate_source is distinct from 'policy'
                  else c.rate_source is not distinct from 'policy'
                       and num_nulls(c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated) = 0
                       and (c.policy_inputs is not null) = (c.kind = 'earning')
                       and (c.flat_cents is null or (c.rate_bps = 0 and c.flat_cents > 0))
                       and c.rule_index between 0 and 19 and c.base_kind in ('gross', 'net_of_tax', 'proceeds') end
      then 'policy_has_its_terms'
    when not ((c.kind in ('reversal', 'correction')) = (c.reverses_commission_id is not null)
              and (c.kind = 'reversal') = (c.adjustment_id is not null)) then 'reversal_names_earning' end;
begin
  if broken is null then
    return true;
  end if;
  raise check_violation using table = 'commissions', constraint = broken,
    message = format('new row for relation "commissions" violates check constraint "%s"', broken);
end $$;

create or replace function payment_number_is_valid(n payment_numbers) returns boolean language plpgsql immutable parallel safe as $$
declare
  broken text := case
    when not (n.counts_as <> n.payment_id) then 'counts_as_another_payment'
    when not (n.environment = 'production') then 'payment_numbers_environment_check'
    when not (n.number > 0) then 'payment_numbers_number_check' end;
begin
  if broken is null then
    return true;
  end if;
  raise check_violation using table = 'payment_numbers', constraint = broken,
    message = format('new row for relation "payment_numbers" violates check constraint "%s"', broken);
end $$;

alter table deliveries
  drop constraint if exists deliveries_body_sha256_check, drop constraint if exists deliveries_check,
  drop constraint if exists deliveries_check1, drop constraint if exists deliveries_check2, drop constraint if exists deliveries_check3,
  drop constraint if exists deliveries_event_count_check, drop constraint if exists deliveries_processing_status_check,
  drop constraint if exists delivery_is_valid, add constraint delivery_is_valid check (delivery_is_valid(deliveries)) not valid;
alter table events
  drop constraint if exists components_are_parts_of_the_payment, drop constraint if exists events_currency_check,
  drop constraint if exists events_fx_rate_check, drop constraint if exists events_fx_units_check,
  drop constraint if exists events_fx_worth_usd_check, drop constraint if exists events_kind_check,
  drop constraint if exists events_likely_cause_check, drop constraint if exists events_source_event_id_check,
  drop constraint if exists fx_rate_is_complete,
  drop constraint if exists event_is_valid, add constraint event_is_valid check (event_is_valid(events)) not valid;
alter table payments
  drop constraint if exists attribution_needs_a_binding, drop constraint if exists never_more_reversed_than_earned,
  drop constraint if exists payments_amount_minor_check, drop constraint if exists payments_base_cents_check,
  drop constraint if exists payments_check, drop constraint if exists payments_corrected_cents_check,
  drop constraint if exists payments_currency_check, drop constraint if exists payments_earned_cents_check,
  drop constraint if exists payments_usd_cents_check,
  drop constraint if exists payment_is_valid, add constraint payment_is_valid check (payment_is_valid(payments)) not valid;
alter table commissions
  drop constraint if exists commissions_amount_cents_check, drop constraint if exists commissions_environment_check,
  drop constraint if exists commissions_kind_check, drop constraint if exists commissions_rate_bps_check,
  drop constraint if exists commissions_rate_source_check, drop constraint if exists commissions_reason_check,
  drop constraint if exists commissions_status_check, drop constraint if exists correction_has_cause,
  drop constraint if exists correction_is_negative, drop constraint if exists earning_is_positive,
  drop constraint if exists entry_has_its_kind, drop constraint if exists entry_has_its_sign, drop constraint if exists matured_has_time,
  drop constraint if exists only_entry_has_no_payment, drop constraint if exists paid_means_in_a_payout,
  drop constraint if exists policy_has_its_terms, drop constraint if exists reversal_names_earning,
  drop constraint if exists commission_is_valid, add constraint commission_is_valid check (commission_is_valid(commissions)) not valid;
alter table payment_numbers
  drop constraint if exists payment_numbers_check, drop constraint if exists payment_numbers_environment_check,
  drop constraint if exists payment_numbers_number_check, drop constraint if exists payment_number_is_valid,
  add constraint payment_number_is_valid check (payment_number_is_valid(payment_numbers)) not valid;
drop function if exists is_event_kind(text);
drop function if exists is_likely_cause(text);
drop function if exists has_parts_as_components(events);
drop function if exists is_of_payment_or_entry(commissions);
drop function if exists has_its_policy(commissions);

-- Blocks neither reads nor writes.
alter table deliveries validate constraint delivery_is_valid;
alter table events validate constraint event_is_valid;
alter table payments validate constraint payment_is_valid;
alter table commissions validate constraint commission_is_valid;
alter table payment_numbers validate constraint payment_number_is_valid;

-- A condition of a trigger costs as much as a check: this one is read only by statements that set a sum.
create or replace trigger payments_guard_sums before update of earned_cents, reversed_cents, corrected_cents on payments
  for each row when (old.earned_cents <> new.earned_cents or old.reversed_cents <> new.reversed_cents
                     or old.corrected_cents <> new.corrected_cents)
  execute function guard_payment_sums();

-- Without its time zone, all parts of the expression are immutable: Postgres then puts it in place of each call.
create or replace function epoch_ms(at timestamptz) returns bigint language sql immutable parallel safe as $$
  select floor(extract(epoch from at at time zone 'UTC') * 1000)::bigint
$$;

-- The parts of the snapshot that only apps with policies have, in PL/pgSQL: one statement with all look-ups prepares each of them for each
-- payment, and Postgres before version 18 plans a function in SQL anew for each statement that calls it.

-- The `AssignedPolicy` of a creator at an instant: the version that `policy_in_effect` returns. Null without one.
create or replace function assigned_policy(of_app text, of_affiliate text, at timestamptz) returns json
language plpgsql stable parallel safe as $$
declare
  scope text;
  of_scope text;
  assigned text;
  version record;
begin
  foreach scope in array array['affiliate', 'group', 'app'] loop
    if scope = 'group' then
      select m.group_id into of_scope from group_memberships m
       where m.affiliate_id = of_affiliate and m.effective_from <= at order by m.effective_from desc, m.position desc limit 1;
      continue when of_scope is null;
    else
      of_scope := case scope when 'app' then of_app else of_affiliate end;
    end if;
    select a.policy_id into assigned from policy_assignments a
     where a.scope_id = of_scope and a.effective_from <= at
     order by a.effective_from desc, a.position desc limit 1;
    continue when assigned is null;
    select v.id, v.terms into version from policy_versions v
     where v.policy_id = assigned and v.effective_from <= at order by v.effective_from desc, v.version desc limit 1;
    if found then
      return json_build_object('scope', scope, 'versionId', version.id, 'terms', version.terms);
    end if;
  end loop;
  return null;
end $$;

-- Sent as one statement, so that the service always finds the function: its type changes.
drop function if exists policy_context(text, text, boolean, text, text, timestamptz); create function policy_context(
  of_binding text, counts_with text, has_paid boolean, of_app text, of_affiliate text, at timestamptz)
returns json language plpgsql stable parallel safe as $$
declare
  subject text := coalesce(counts_with, of_binding);
  last record;
begin
  select n.number, n.first_paid_at into last from payment_numbers n
   where n.subject_id = subject and n.counts_as is null order by n.number desc limit 1;
  if last.number is null and not has_paid then
    has_paid := exists (select from bindings y where y.id = subject and y.first_paid_at is not null)
      or exists (select from bindings y where y.counts_with = subject and y.first_paid_at is not null);
  end if;
  return json_build_object(
    'subjectId', subject, 'payments', coalesce(last.number, 0), 'firstPaidAt', epoch_ms(last.first_paid_at),
    'hasUnnumbered', last.number is null and has_paid, 'assigned', assigned_policy(of_app, of_affiliate, at));
end $$;

create or replace function stated_components(p payments, refs text[], kinds text[]) returns jsonb language plpgsql stable parallel safe as $$
declare
  stated jsonb := '[]';
  of_ref text;
  e record;
begin
  foreach of_ref in array refs loop
    for e in
      select x.id, x.source, x.product_id, (x.currency, x.amount_minor) = (p.currency, p.amount_minor) as is_same_amount,
             x.tax_minor, x.tax_ppm, x.store_fee_minor, x.store_fee_ppm
        from events x
       where x.app_id = p.app_id and x.payment_ref = of_ref collate "default" and x.environment = p.environment and x.store = p.store
         and x.kind = any(kinds)
    loop
      stated := stated || jsonb_strip_nulls(jsonb_build_object(
        'eventId', e.id, 'source', e.source, 'productId', e.product_id, 'isSameAmount', e.is_same_amount,
        'tax', case when e.tax_minor is not null then jsonb_build_object('minor', e.tax_minor)
                    when e.tax_ppm is not null then jsonb_build_object('ppm', e.tax_ppm) end,
        'storeFee', case when e.store_fee_minor is not null then jsonb_build_object('minor', e.store_fee_minor)
                         when e.store_fee_ppm is not null then jsonb_build_object('ppm', e.store_fee_ppm) end));
    end loop;
  end loop;
  return stated;
end $$;
drop function if exists stated_component(bigint, integer);

reset lock_timeout;
