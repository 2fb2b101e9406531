-- Whether a transfer beside the stated one arrived, as a report says, or was under way: who states that the money came back while one is
-- under way does not know yet that it arrives. Of the rows that exist it is not known: what was decided about them stays decided.
alter table other_transfers add column has_arrived boolean not null default true;
-- Of a process of the version before.
alter table other_transfers alter column has_arrived set default false;
-- Rows are few: each is a contradiction that a person has to look at, or the payment of a mark by hand.
alter table other_transfers drop constraint other_transfers_pkey, add primary key (payout_id, position, reference, has_arrived);
drop trigger other_transfers_audit on other_transfers;
create trigger other_transfers_audit after insert on other_transfers
  for each row execute function write_audit_row('other_transfer', 'payout_id', 'reference has_arrived position');
