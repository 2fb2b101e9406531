-- What a founder has to look at: opened when a rule begins to hold for a subject, closed when it has ended, and never changed otherwise.
-- The same again is a new row.
create domain alert_id as text collate "C" check (value ~ '^alr_[0-7][0-9a-hjkmnp-tv-z]{25}$');

create table alerts (
  id        alert_id primary key,
  app_id    app_id not null references apps (id),
  rule      text collate "C" not null
            check (rule in ('provider_silent', 'deliveries_failing', 'webhooks_refused', 'draft_waiting', 'run_stalled', 'endpoint_failing')),
  -- What it is about: the name of a provider, or the id of a payout run or endpoint.
  subject   text collate "C" not null check (length(subject) between 1 and 100),
  -- What was found when it was opened.
  facts     jsonb not null check (jsonb_typeof(facts) = 'object'),
  opened_at timestamptz not null,
  closed_at timestamptz check (closed_at >= opened_at)
);
-- One open alert, whatever evaluates the rules at the same time.
create unique index alerts_one_open on alerts (app_id, rule, subject) where closed_at is null;
-- An evaluation opens nothing again that was closed after it had read its facts.
create index alerts_last_closed on alerts (app_id, rule, subject, closed_at desc) where closed_at is not null;
-- Open ones first.
create index alerts_by_app on alerts (app_id, (closed_at is null) desc, opened_at desc, id desc);

create function guard_alert() returns trigger language plpgsql as $$
begin
  if old.closed_at is not null or new.closed_at is null or to_jsonb(new) - 'closed_at' <> to_jsonb(old) - 'closed_at' then
    raise exception 'alert % can only be closed, once', old.id using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger alerts_guard before update on alerts for each row execute function guard_alert();
create trigger alerts_kept before delete or truncate on alerts for each statement execute function forbid_change();

-- Writes a message for each active endpoint that asks for it.
create function announce_alert() returns trigger language plpgsql as $$
declare
  message_type constant text := case tg_op when 'INSERT' then 'alert.opened' else 'alert.closed' end;
begin
  insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data)
  select new_webhook_message_id(), new.app_id, e.id, message_type, new.id,
         jsonb_build_object(
           'alertId', new.id, 'rule', new.rule, 'subject', new.subject, 'facts', new.facts,
           'openedAt', epoch_ms(new.opened_at), 'closedAt', epoch_ms(new.closed_at))
    from webhook_endpoints e
   where e.app_id = new.app_id and e.deactivated_at is null and message_type = any(e.event_types)
  on conflict (endpoint_id, type, subject_id) do nothing;
  return null;
end $$;
create trigger alerts_announce_opened after insert on alerts for each row execute function announce_alert();
create trigger alerts_announce_closed after update on alerts for each row execute function announce_alert();
