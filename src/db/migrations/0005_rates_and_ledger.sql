-- Exchange rates that lose nothing, the rate that an event was converted at, and the payments that wait for one.

-- So many `units` of a currency are worth `worth_usd` dollars. The European Central Bank states dollars per euro and units
-- per euro; storing their quotient would round. What was stored before is dollars for one unit.
alter table exchange_rates rename column usd_rate to worth_usd;
alter table exchange_rates add column units numeric not null default 1 check (units > 0);
alter table exchange_rates alter column units drop default;

-- The cents of a converted event follow from amount, units and worth; fx_rate is their quotient, rounded, to look at.
alter table events add column fx_units numeric check (fx_units > 0);
alter table events add column fx_worth_usd numeric check (fx_worth_usd > 0);
update events set fx_units = 1, fx_worth_usd = fx_rate where fx_rate is not null;
alter table events add constraint a_frozen_rate_is_whole
  check ((fx_rate is null) = (fx_units is null) and (fx_rate is null) = (fx_worth_usd is null));

-- Payments that wait for a rate, by what they wait for: `src/db/rates.ts` walks the days, not the payments.
create index payments_waiting_for_rate on payments (currency, ((occurred_at at time zone 'UTC')::date), id)
  where likely_cause = 'missing_exchange_rate';
