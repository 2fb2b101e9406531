alter table erased_identifiers validate constraint erased_identifiers_pseudonym_check;

-- Earlier versions replaced a customer of Stripe like a subscription, so that the payments of others with that customer led to the erased
-- person as closely as to their own users. A customer stands behind the subscription in each of its payments, or alone. Paddle's
-- customers are no keys. What a code or a founder has bound stays as it is.
with customers as materialized (
  select x.app_id, x.hash, x.kind, x.pseudonym, 'erased:customer:' || substr(x.pseudonym, length('erased:') + 1) as replacement
    from erased_identifiers x
   where x.kind = 'key' and x.pseudonym !~ '^erased:customer:'
     and exists (select from payment_user_keys k where k.app_id = x.app_id and k.user_key = x.pseudonym and k.source = 'stripe')
     and not exists (select from payment_user_keys k
                       join payment_user_keys o on o.payment_id = k.payment_id and o.user_key <> k.user_key and o.position >= k.position
                      where k.app_id = x.app_id and k.user_key = x.pseudonym)
     and not exists (select from bindings b where b.app_id = x.app_id and b.customer_user_id = x.pseudonym)
), keys as (
  update payment_user_keys k set user_key = c.replacement from customers c where k.app_id = c.app_id and k.user_key = c.pseudonym
), links as (
  update user_links l set user_key = c.replacement from customers c where l.app_id = c.app_id and l.user_key = c.pseudonym
)
update erased_identifiers x set pseudonym = c.replacement from customers c
 where x.app_id = c.app_id and x.hash = c.hash and x.kind = c.kind;
