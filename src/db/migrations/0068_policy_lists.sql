-- without transaction
-- Lists of policies that are archived or not, and the assignments of one policy.
drop index concurrently if exists policies_in_use;

create index concurrently policies_in_use on policies (app_id, created_at, id) where archived_at is null;

drop index concurrently if exists policies_archived_by_created;

create index concurrently policies_archived_by_created on policies (app_id, created_at, id) where archived_at is not null;

drop index concurrently if exists policy_assignments_by_policy;

create index concurrently policy_assignments_by_policy on policy_assignments (app_id, policy_id) where policy_id is not null;
