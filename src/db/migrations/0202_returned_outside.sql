-- What was paid outside Stripe, and returned by a credit note, was taken back twice. These payments are evaluated again, in an hour: a process
-- of the old version, which may still run, would evaluate them as before.
update payments p
   set recheck_since = now() + interval '1 hour', version = p.version + 1
  from adjustments n
 where n.kind = 'credit_note' and n.environment = 'production' and n.state = 'applied' and p.id = n.booked_payment_id
   and exists (select from adjustments o
                where o.app_id = n.app_id and o.environment = n.environment and o.store = n.store
                  and o.payment_ref = n.payment_ref and o.kind = 'out_of_band' and o.state = 'applied');
