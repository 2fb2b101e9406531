-- Finds the user ids that differ from one in a billing event only in the case of A to Z or in surrounding spaces.
create index identities_by_alike_user on identities (app_id, (lower(btrim(customer_user_id) collate "C")));
