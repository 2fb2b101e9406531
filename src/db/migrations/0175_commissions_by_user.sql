-- without transaction
-- The commissions of a user. No other index leads to all of them: a payment may name its user only through a link or a code.
drop index concurrently if exists commissions_by_user;
create index concurrently commissions_by_user on commissions (app_id, customer_user_id, occurred_at desc, id desc)
  where customer_user_id is not null;
