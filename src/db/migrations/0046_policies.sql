-- Commission policies: what creators earn, as versions that take effect at a date. Facts are appended and never changed: groups of
-- creators, who is in which group from when, the versions of a policy, and to whom a policy is assigned from when. A payment earns on what
-- is in effect at its own time. An app without an assignment has no row here, and nothing is looked up for its payments.
create domain group_id as text collate "C" check (value ~ '^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain policy_id as text collate "C" check (value ~ '^pol_[0-7][0-9a-hjkmnp-tv-z]{25}$');
create domain policy_version_id as text collate "C" check (value ~ '^plv_[0-7][0-9a-hjkmnp-tv-z]{25}$');

-- The first instant at which a policy is in effect. From then on, payments are numbered. Null: the app has no policies.
alter table apps add column policies_from timestamptz;

create table affiliate_groups (
  id         group_id primary key,
  app_id     app_id not null references apps (id),
  name       text not null check (length(name) between 1 and 200),
  created_at timestamptz not null default now(),
  unique (app_id, id)
);
create index affiliate_groups_by_created on affiliate_groups (app_id, created_at, id);
create trigger affiliate_groups_audit after insert or update on affiliate_groups
  for each row execute function write_audit_row('affiliate_group', 'id', 'name');

create table policies (
  id         policy_id primary key,
  app_id     app_id not null references apps (id),
  name       text not null check (length(name) between 1 and 200),
  created_at timestamptz not null default now(),
  unique (app_id, id)
);
create index policies_by_created on policies (app_id, created_at, id);
create trigger policies_audit after insert or update on policies
  for each row execute function write_audit_row('policy', 'id', 'name');

create table policy_versions (
  id             policy_version_id primary key,
  app_id         app_id not null,
  policy_id      policy_id not null,
  version        integer not null check (version > 0),
  effective_from timestamptz not null,
  terms          jsonb not null check
    (terms->>'base' in ('gross', 'net_of_tax', 'proceeds') and jsonb_typeof(terms->'rules') = 'array'
     and jsonb_array_length(terms->'rules') between 1 and 20
     -- Each evaluation reads them.
     and octet_length(terms::text) <= 16384),
  created_at     timestamptz not null default now(),
  unique (app_id, id),
  unique (policy_id, version),
  foreign key (app_id, policy_id) references policies (app_id, id)
);
create index policy_versions_in_effect on policy_versions (policy_id, effective_from desc, version desc);
create trigger policy_versions_append_only before update or delete or truncate on policy_versions
  for each statement execute function forbid_change();
create trigger policy_versions_audit after insert on policy_versions
  for each row execute function write_audit_row('policy_version', 'id', 'policy_id version effective_from terms');

-- A creator belongs to one group, or to none (null), from an instant on.
create table group_memberships (
  app_id         app_id not null,
  affiliate_id   affiliate_id not null,
  position       integer not null check (position > 0),
  group_id       group_id,
  effective_from timestamptz not null,
  created_at     timestamptz not null default now(),
  primary key (affiliate_id, position),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, group_id) references affiliate_groups (app_id, id)
);
create index group_memberships_by_group on group_memberships (app_id, group_id, affiliate_id);
create index group_memberships_in_effect on group_memberships (affiliate_id, effective_from desc, position desc);
create trigger group_memberships_append_only before update or delete or truncate on group_memberships
  for each statement execute function forbid_change();
create trigger group_memberships_audit after insert on group_memberships
  for each row execute function write_audit_row('group_membership', 'affiliate_id', 'group_id effective_from');

-- The policy of an app, of a group or of a creator, or none (null), from an instant on.
create table policy_assignments (
  app_id         app_id not null references apps (id),
  group_id       group_id,
  affiliate_id   affiliate_id,
  -- What it is assigned to: the id of the creator, of the group or of the app.
  scope_id       text collate "C" not null generated always as (coalesce(affiliate_id::text, group_id::text, app_id::text)) stored,
  position       integer not null check (position > 0),
  policy_id      policy_id,
  effective_from timestamptz not null,
  created_at     timestamptz not null default now(),
  primary key (scope_id, position),
  constraint assigned_to_one_scope check (num_nonnulls(group_id, affiliate_id) <= 1),
  foreign key (app_id, group_id) references affiliate_groups (app_id, id),
  foreign key (app_id, affiliate_id) references affiliates (app_id, id),
  foreign key (app_id, policy_id) references policies (app_id, id)
);
create index policy_assignments_in_effect on policy_assignments (scope_id, effective_from desc, position desc);
create index policy_assignments_by_app on policy_assignments (app_id, created_at desc, scope_id desc);
create index policy_assignments_by_scope on policy_assignments (app_id, scope_id, created_at desc);
create trigger policy_assignments_append_only before update or delete or truncate on policy_assignments
  for each statement execute function forbid_change();
create trigger policy_assignments_audit after insert on policy_assignments
  for each row execute function write_audit_row('policy_assignment', 'scope_id', 'policy_id group_id affiliate_id effective_from');

-- Nothing takes effect within the minute after its commit, so that no evaluation misses what is in effect at the time of its payment.
create function check_effective_from() returns trigger language plpgsql as $$
begin
  if new.effective_from < clock_timestamp() + interval '1 minute' then
    raise exception 'a change of terms takes effect a minute after its commit at the earliest, not at %', new.effective_from
      using errcode = 'integrity_constraint_violation', constraint = 'takes_effect_later';
  end if;
  return null;
end $$;
create constraint trigger policy_versions_take_effect_later after insert on policy_versions
  deferrable initially deferred for each row execute function check_effective_from();
create constraint trigger group_memberships_take_effect_later after insert on group_memberships
  deferrable initially deferred for each row execute function check_effective_from();
create constraint trigger policy_assignments_take_effect_later after insert on policy_assignments
  deferrable initially deferred for each row execute function check_effective_from();

create function begin_policies() returns trigger language plpgsql as $$
begin
  update apps set policies_from = new.effective_from
   where id = new.app_id and (policies_from is null or policies_from > new.effective_from);
  return null;
end $$;
create trigger policy_assignments_begin after insert on policy_assignments for each row execute function begin_policies();

-- The version in effect for a creator at an instant: of the policy of the creator, else of the creator's group, else of the app. A policy
-- that has no version yet is not in effect. No row: none.
create function policy_in_effect(of_app app_id, of_affiliate affiliate_id, at timestamptz)
returns table (scope text, policy_id policy_id, version_id policy_version_id, version integer, terms jsonb)
language sql stable parallel safe rows 1 as $$
  select s.scope, v.policy_id, v.id, v.version, v.terms
    from (values (1, 'affiliate', of_affiliate::text),
                 (2, 'group', (select m.group_id::text from group_memberships m
                                where m.affiliate_id = of_affiliate and m.effective_from <= at
                                order by m.effective_from desc, m.position desc limit 1)),
                 (3, 'app', of_app::text)) s (rank, scope, id)
   cross join lateral (
     select a.policy_id from policy_assignments a
      where a.scope_id = s.id and a.effective_from <= at
      order by a.effective_from desc, a.position desc limit 1) a
   cross join lateral (
     select * from policy_versions x
      where x.policy_id = a.policy_id and x.effective_from <= at
      order by x.effective_from desc, x.version desc limit 1) v
   order by s.rank limit 1
$$;

-- Whose payments are numbered together: those of the one who transferred the purchases. Null: the own ones.
alter table bindings add column counts_with text collate "C";

-- The binding with which those of a user are counted who was bound by a transfer: that of the giver, who has the same attribution.
create function binding_of_giver(of_app app_id, receiver text, of_attribution attribution_id) returns text language sql stable as $$
  select min(coalesce(b.counts_with, b.id::text))
    from user_transfers r
    join user_transfers g on g.event_id = r.event_id and g.app_id = r.app_id and g.role = 'giver'
    join bindings b on b.app_id = g.app_id and b.customer_user_id = g.customer_user_id
   where r.app_id = of_app and r.customer_user_id = receiver and r.role = 'receiver' and b.attribution_id = of_attribution
     and b.customer_user_id <> receiver
$$;

create function count_with_giver() returns trigger language plpgsql as $$
begin
  new.counts_with := coalesce(new.counts_with, binding_of_giver(new.app_id, new.customer_user_id, new.attribution_id));
  return new;
end $$;
-- Also for a version that does not know this.
create trigger bindings_count_with_giver before insert on bindings for each row execute function count_with_giver();

-- Receivers of transfers from before, in the order in which they were bound: a transfer of a transfer leads to the first giver.
do $$
declare
  receiver record;
begin
  for receiver in
    select distinct o.created_at, o.id, o.app_id, o.customer_user_id, o.attribution_id
      from user_transfers t join bindings o on o.app_id = t.app_id and o.customer_user_id = t.customer_user_id
     where t.role = 'receiver' order by o.created_at, o.id
  loop
    update bindings b set counts_with = g.giver
      from (select binding_of_giver(receiver.app_id, receiver.customer_user_id, receiver.attribution_id) as giver) g
     where b.id = receiver.id and g.giver is not null
       -- The giver was bound before.
       and exists (select from bindings x where x.id = g.giver and (x.created_at, x.id) < (receiver.created_at, receiver.id));
  end loop;
end $$;

drop trigger bindings_immutable on bindings;
create trigger bindings_immutable before update on bindings
  for each row when (old.attribution_id <> new.attribution_id or old.customer_user_id <> new.customer_user_id
                     or old.counts_with is distinct from new.counts_with
                     or (old.first_paid_at is not null and old.first_paid_at is distinct from new.first_paid_at))
  execute function forbid_binding_change();

-- The payments of a customer in the order in which they were attributed, from 1. Rows of one payment have one number: the row of a whole
-- invoice counts as its part that was attributed before (counts_as). Rules that name the first payments or months read this.
create table payment_numbers (
  payment_id    payment_id primary key,
  app_id        app_id not null,
  environment   environment not null default 'production' check (environment = 'production'),
  -- The binding with which the payments are counted.
  subject_id    binding_id not null,
  number        integer not null check (number > 0),
  -- The time of the payment with number 1. Months are counted from it.
  first_paid_at timestamptz not null,
  counts_as     payment_id,
  created_at    timestamptz not null default now(),
  check (counts_as <> payment_id),
  foreign key (app_id, payment_id, environment) references payments (app_id, id, environment),
  foreign key (app_id, subject_id) references bindings (app_id, id),
  foreign key (counts_as) references payment_numbers (payment_id)
);
create unique index one_payment_per_number on payment_numbers (subject_id, number) where counts_as is null;
create index payment_numbers_by_app on payment_numbers (app_id, subject_id, number);
create trigger payment_numbers_append_only before update or delete or truncate on payment_numbers
  for each statement execute function forbid_change();

create function check_payment_number() returns trigger language plpgsql as $$
begin
  if not exists (
    select from payments p join bindings b on b.id = p.binding_id
     where p.id = new.payment_id and coalesce(b.counts_with, b.id) = new.subject_id
       and case when new.counts_as is not null then exists (
                  select from payment_numbers n
                   where n.payment_id = new.counts_as and n.counts_as is null
                     and (n.subject_id, n.number, n.first_paid_at) = (new.subject_id, new.number, new.first_paid_at))
                when new.number = 1 then new.first_paid_at = p.occurred_at
                else exists (
                  select from payment_numbers n
                   where n.subject_id = new.subject_id and n.number = new.number - 1 and n.counts_as is null
                     and n.first_paid_at = new.first_paid_at) end
  ) then
    raise exception 'payment % is not the next one of its customer', new.payment_id
      using errcode = 'integrity_constraint_violation', constraint = 'payment_numbers_have_no_gap';
  end if;
  return null;
end $$;
create constraint trigger payment_numbers_have_no_gap after insert on payment_numbers
  for each row execute function check_payment_number();

-- A process of an earlier version numbers no payments. Its evaluation fails, and is retried until this version makes it.
create function require_payment_number() returns trigger language plpgsql as $$
begin
  -- By the time of the writing: it may have waited for a lock since its statement began.
  if exists (select from apps a where a.id = new.app_id and a.policies_from <= clock_timestamp())
     and not exists (select from payment_numbers n where n.payment_id = new.id) then
    raise exception 'payment % is attributed in an app with policies and has no number', new.id
      using errcode = 'integrity_constraint_violation', constraint = 'attributed_payments_have_a_number';
  end if;
  return null;
end $$;
create trigger payments_have_a_number after update of binding_id on payments
  for each row when (old.binding_id is null and new.binding_id is not null) execute function require_payment_number();

-- What an earning by a policy was computed from. Its base is the policy's, in US cents; reversals and corrections have the terms of their
-- earning. A column of a domain would rewrite the table; the foreign key has the same effect.
alter table commissions
  add column policy_version_id text collate "C",
  add column rule_index smallint,
  add column base_kind text collate "C",
  add column base_estimated boolean,
  add column flat_cents bigint,
  add column policy_inputs jsonb,
  drop constraint commissions_rate_source_check,
  add constraint commissions_rate_source_check check (rate_source in ('affiliate', 'app', 'policy')) not valid,
  drop constraint commissions_rate_bps_check,
  add constraint commissions_rate_bps_check check (rate_bps > 0 or coalesce(flat_cents, 0) > 0 or entry_id is not null) not valid,
  add constraint commission_has_its_policy foreign key (app_id, policy_version_id)
    references policy_versions (app_id, id) not valid;

-- Every statement that writes to a table reads the text of its checks anew, at 3.6 µs per kilobyte of their parsed form. A function is read
-- once by each connection.
create function has_its_policy(c commissions) returns boolean language plpgsql immutable parallel safe as $$
begin
  if num_nonnulls(c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated, c.flat_cents, c.policy_inputs) = 0 then
    return c.rate_source is distinct from 'policy';
  end if;
  return c.rate_source is not distinct from 'policy'
     and num_nulls(c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated) = 0
     and (c.policy_inputs is not null) = (c.kind = 'earning')
     and (c.flat_cents is null or (c.rate_bps = 0 and c.flat_cents > 0))
     and c.rule_index between 0 and 19 and c.base_kind in ('gross', 'net_of_tax', 'proceeds');
end $$;
alter table commissions add constraint policy_has_its_terms check (has_its_policy(commissions)) not valid;

create or replace function check_reversal() returns trigger language plpgsql as $$
begin
  if not exists (
    select from commissions e
     where e.id = new.reverses_commission_id and e.kind = 'earning' and e.payment_id = new.payment_id
       and e.affiliate_id = new.affiliate_id and e.rate_bps = new.rate_bps and e.due_at = new.due_at
       and (e.policy_version_id, e.rule_index, e.flat_cents)
           is not distinct from (new.policy_version_id, new.rule_index, new.flat_cents)
  ) then
    raise exception '% % differs from its earning in payment, affiliate, rate, policy or due date', new.kind, new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;

-- How a commission shows its policy, in the API and in outgoing webhooks. Null for any other one.
create function shown_policy(version_id text, rule_index smallint, base_kind text, base_estimated boolean, flat_cents bigint)
returns jsonb language sql stable parallel safe as $$
  select jsonb_build_object('policyId', v.policy_id, 'name', p.name, 'policyVersionId', v.id, 'version', v.version,
                            'ruleIndex', rule_index, 'base', base_kind, 'baseEstimated', base_estimated)
         || case when flat_cents is null then '{}' else jsonb_build_object('flatCents', flat_cents) end
    from policy_versions v join policies p on p.id = v.policy_id
   where v.id = version_id
$$;

create or replace function announce_commissions() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_endpoints where deactivated_at is null) then
    return null;
  end if;
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  with starts as materialized (
    select a.app_id, left(new_webhook_message_id(), 23) as id_start
      from (select distinct app_id from changed) a
     where exists (select from webhook_endpoints e where e.app_id = a.app_id and e.deactivated_at is null)
  )
  select s.id_start || lpad(to_hex(row_number() over (partition by c.app_id)), 7, '0'), c.app_id, e.id, t.type, c.id,
         jsonb_build_object(
           'commissionId', c.id, 'kind', c.kind, 'affiliateId', c.affiliate_id, 'linkId', c.link_id, 'eventId', c.event_id,
           'reversesCommissionId', c.reverses_commission_id, 'amount', usd_text(c.amount_cents),
           'amountCents', c.amount_cents, 'currency', 'USD', 'rateBps', c.rate_bps,
           'occurredAt', epoch_ms(c.occurred_at), 'dueAt', epoch_ms(c.due_at))
         || coalesce((select jsonb_build_object('entryId', n.id, 'category', n.category, 'reason', n.reason, 'undoesEntryId', n.undoes_entry_id)
                        from entries n where n.id = c.entry_id), '{}')
         || case when c.policy_version_id is null then '{}' else jsonb_build_object(
              'policy', shown_policy(c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated, c.flat_cents)) end
    from changed c
    join starts s on s.app_id = c.app_id
   cross join lateral (
     select case when tg_op = 'UPDATE' then case when c.entry_id is null then 'commission.matured' end
                 when c.kind = 'earning' then 'commission.created'
                 when c.entry_id is not null then 'commission.adjusted'
                 else 'commission.reversed' end as type) t
    join webhook_endpoints e on e.app_id = c.app_id and e.deactivated_at is null and t.type = any(e.event_types)
   where tg_op = 'INSERT'
      -- The rows of a payout that is recorded from its file matured in another history of the database.
      or c.matured_at = now() and not exists (select from payouts p where p.id = c.payout_id and p.recorded_at is not null)
  on conflict (endpoint_id, type, subject_id) do nothing;
  return null;
end $$;

alter table events
  drop constraint events_likely_cause_check,
  add constraint events_likely_cause_check check
    (likely_cause in ('missing_user_id', 'anonymous_user_id', 'user_never_identified', 'user_id_mismatch', 'user_not_attributed',
                      'outside_attribution_window', 'affiliate_paused', 'affiliate_removed', 'rate_zero', 'missing_exchange_rate',
                      'price_unknown', 'processing', 'test_key_only', 'no_policy_rule')) not valid;
