-- without transaction
drop index concurrently if exists one_commission_per_entry;

create unique index concurrently one_commission_per_entry on commissions (entry_id) where entry_id is not null;
