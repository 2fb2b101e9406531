-- A key is the same one whichever provider reports it: its users are those that an event of any provider names with it.
create or replace function users_of_key(of_app text, key text, of_source text) returns table (customer_user_id text)
language sql stable parallel safe as $$
  select y.customer_user_id from subscription_codes y
   where y.app_id = of_app and y.user_key = key and y.environment = 'production' and y.customer_user_id is not null
  union
  (select w.customer_user_id
     from (select * from payment_user_keys z where z.app_id = of_app and z.user_key = key limit 200) k
    cross join lateral (select * from payment_users z where z.payment_id = k.payment_id offset 0) w
    where k.environment = 'production')
$$;
