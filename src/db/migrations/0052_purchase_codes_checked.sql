-- Blocks neither reads nor writes.
alter table attributions validate constraint attributions_match_method_check;
alter table attributions validate constraint others_than_installs_have_no_device;
alter table attributions validate constraint purchase_code_has_its_code;
alter table attributions validate constraint attribution_has_its_code;
alter table events validate constraint events_likely_cause_check;
