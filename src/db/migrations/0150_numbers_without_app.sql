-- without transaction
-- Only the check of the ledger read it, and each payment of an app with policies wrote it.
drop index concurrently if exists payment_numbers_by_app;
