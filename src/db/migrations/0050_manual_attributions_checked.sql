-- Blocks neither reads nor writes.
alter table attributions validate constraint attributions_match_method_check;
alter table attributions validate constraint only_manual_ones_have_no_device;
alter table payments validate constraint attribution_needs_a_binding;
alter table payments validate constraint payment_has_its_attribution;
