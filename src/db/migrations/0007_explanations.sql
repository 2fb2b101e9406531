-- Whose rate a commission was calculated with, so that it can be explained later. Null on rows from before.
alter table commissions add column rate_source text check (rate_source in ('affiliate', 'app'));
