-- With an endpoint fail the messages that wait longest, at most as many as a statement changes within seconds. Each of the others fails when
-- its turn comes: without a limit, an endpoint with very many of them could not be deactivated at all.
create or replace function fail_waiting_messages() returns trigger language plpgsql as $$
begin
  update webhook_messages
     set status = 'failed', completed_at = now(), next_attempt_at = null, relay_at = null, last_problem = 'The endpoint is not active.'
   where id in (select id from webhook_messages
                 where endpoint_id = new.id and completed_at is null order by relay_at limit 20000);
  return null;
end $$;
