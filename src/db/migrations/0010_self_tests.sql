-- The self-test of a set-up: requests that this service sends to itself, known by their bytes, so that nothing they say
-- can ever become money. docs/money.md has the rule.

-- Announced before it is posted. The body holds a random part, so nobody else's body has this hash, and only who writes
-- here can announce one. Rows stay: a copy that somebody holds back and delivers much later is known still.
create table self_test_requests (
  app_id       app_id not null references apps (id),
  provider     provider not null,
  body_sha256  bytea not null check (length(body_sha256) = 32),
  announced_at timestamptz not null default now(),
  -- When it arrived here and its proof was refused. Such a request is no row of deliveries: nobody attacked.
  refused_at   timestamptz,
  primary key (app_id, provider, body_sha256)
);

alter table deliveries add column is_self_test boolean not null default false;

-- Whoever writes a delivery, its bytes decide.
create function mark_self_test() returns trigger language plpgsql as $$
begin
  new.is_self_test := exists (
    select from self_test_requests s
     where s.app_id = new.app_id and s.provider = new.provider and s.body_sha256 = new.body_sha256);
  return new;
end $$;
create trigger deliveries_mark_self_test before insert on deliveries for each row
  when (new.signature_valid) execute function mark_self_test();

create function forbid_self_test_change() returns trigger language plpgsql as $$
begin
  raise exception 'whether delivery % is of a self-test was decided when it arrived', old.id
    using errcode = 'integrity_constraint_violation';
end $$;
create trigger deliveries_self_test_stays before update of is_self_test on deliveries for each row
  when (old.is_self_test <> new.is_self_test) execute function forbid_self_test_change();
create trigger self_test_requests_stay before delete or truncate on self_test_requests
  for each statement execute function forbid_change();

-- Commissions and revenue name a payment of production (0001). That names an event of production, and that no self-test.
create function check_self_test_is_sandbox() returns trigger language plpgsql as $$
begin
  if exists (select from deliveries d where d.id = new.delivery_id and d.is_self_test) then
    raise exception 'event % is of a self-test: it is of the sandbox, whatever it says', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger events_self_test_is_sandbox before insert or update of environment, delivery_id on events for each row
  when (new.environment = 'production') execute function check_self_test_is_sandbox();

create function check_payment_is_of_production() returns trigger language plpgsql as $$
begin
  if not exists (select from events e where e.id = new.event_id and e.environment = 'production') then
    raise exception 'payment % is of production, but its event is not', new.id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger payments_of_production before insert or update of environment, event_id on payments for each row
  when (new.environment = 'production') execute function check_payment_is_of_production();

-- The latest that a provider itself delivered. Refused ones have deliveries_refused.
create index deliveries_latest_accepted on deliveries (app_id, provider, received_at desc)
  where signature_valid and not is_self_test;
drop index deliveries_latest;
