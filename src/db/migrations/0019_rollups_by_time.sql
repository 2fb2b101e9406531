-- without transaction
-- Which creators and links were active in a range, without reading the others. None of its columns changes after the insert, so
-- a popular row is still updated in place.
drop index concurrently if exists rollup_blocks_by_time;

create index concurrently rollup_blocks_by_time on rollup_blocks (app_id, scope, block_at desc, scope_id);
