-- A creator learns that the money of a payout was sent. A statement that is withdrawn and made again within a day is no
-- news, unless the money came back in between.
create function mail_sent_payout() returns trigger language plpgsql as $$
declare
  creator affiliate_id := (select p.affiliate_id from payouts p where p.app_id = new.app_id and p.id = new.payout_id);
  came_back integer := (select max(position) from payout_transfers where payout_id = new.payout_id and state = 'returned');
begin
  if not exists (select from payout_transfers t
                   join emails e on e.app_id = t.app_id and e.kind = 'payout_sent' and e.subject_id = t.id
                  where t.payout_id = new.payout_id and t.position < new.position and t.position > coalesce(came_back, 0)
                    and t.state = 'sent' and e.status in ('queued', 'sent') and t.created_at > now() - interval '1 day') then
    perform queue_email(new.app_id, creator, 'payout_sent', new.id);
  end if;
  return null;
end $$;
create trigger payout_transfers_mail after insert on payout_transfers for each row when (new.state = 'sent') execute function mail_sent_payout();
