-- After which row the next run of the removal of expired data begins: the last one ended before it had seen all rows. Null if it had.
alter table retention_progress add column resume_after text collate "C";
