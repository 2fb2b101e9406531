-- What founders note about a creator, for themselves: creators see neither. The check of the rows is in the next file.
alter table affiliates
  add column note text collate "C",
  add column tags text[] not null default '{}',
  add constraint affiliates_note_check check (length(note) between 1 and 2000) not valid,
  add constraint affiliates_tags_check check
    (cardinality(tags) <= 20 and array_position(tags, null) is null and length(array_to_string(tags, '')) <= 800) not valid;

-- A note that is removed stays in no audit row.
drop trigger affiliates_audit on affiliates;
create trigger affiliates_audit after insert or update on affiliates for each row execute function
  write_audit_row('affiliate', 'id', 'name email! status default_commission_rate_bps external_id email_confirmed note! tags');
