-- Blocks neither reads nor writes.
alter table commissions validate constraint commissions_rate_source_check;
alter table commissions validate constraint commissions_rate_bps_check;
alter table commissions validate constraint policy_has_its_terms;
alter table commissions validate constraint commission_has_its_policy;
alter table events validate constraint events_likely_cause_check;
