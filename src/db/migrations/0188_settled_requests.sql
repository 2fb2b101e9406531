-- A payout request is settled once: what became of it never changes, so a closed one is never paid.
create trigger payout_requests_settled_once before update on payout_requests
  for each row when (old.status <> 'open' and (new.status, new.payout_id, new.net_cents) is distinct from (old.status, old.payout_id, old.net_cents))
  execute function forbid_change();
