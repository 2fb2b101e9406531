-- A payment that is dated ahead, as RevenueCat dates renewals, was made when it was received: what a founder says before its date changes nothing.
-- Instants are compared in milliseconds, and an attribution counts from when it was made at the latest, as the evaluation reads it (`mayAttribute`).
create or replace function check_manual_attribution() returns trigger language plpgsql as $$
declare
  is_of_binding boolean;
  paid_at timestamptz;
begin
  -- Nearly every payment belongs to the creator of its binding. That takes a quarter of the time of the whole question.
  select b.reassigned_at is null and (t.match_method <> 'manual' or epoch_ms(new.occurred_at) >= epoch_ms(least(t.touched_at, t.created_at)))
    into is_of_binding
    from bindings b join attributions t on t.id = b.attribution_id where b.id = new.binding_id;
  if is_of_binding and new.attribution_id is null then
    return null;
  end if;
  -- A minute is the most by which clocks may differ (`paidAtOf`).
  select least(new.occurred_at, e.received_at + interval '1 minute') into paid_at from events e where e.id = new.event_id;
  if exists (
    select from bindings b
      join attributions t on t.id = b.attribution_id
     where b.id = new.binding_id
       and (attribution_at(b, paid_at) is distinct from coalesce(new.attribution_id, b.attribution_id::text)
            or b.reassigned_at is null and not is_of_binding)
       and not exists (
         select from same_payment(new.app_id, new.environment, new.store, array[new.ref]) q
          where q.id <> new.id and q.binding_id = new.binding_id)
  ) then
    raise exception 'payment % belongs to another creator, or to nobody', new.id
      using errcode = 'integrity_constraint_violation', constraint = 'manual_attributions_are_followed';
  end if;
  return null;
end $$;
