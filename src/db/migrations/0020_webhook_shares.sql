-- For the relay of messages: what is open at each endpoint, so that none takes the place of the others.
create index webhook_messages_open on webhook_messages (endpoint_id, relay_at) where completed_at is null;
