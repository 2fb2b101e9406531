-- The attempt that was begun last: a statement whose answer was lost is sent again, and finds its own.
alter table emails add column attempt_id uuid;
