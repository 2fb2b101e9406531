-- without transaction
-- Only the checks of the ledger read it, and each payment of an app with policies wrote it. What they search by app, as in revenue_entries,
-- reads the whole table.
drop index concurrently if exists payment_numbers_by_app;
