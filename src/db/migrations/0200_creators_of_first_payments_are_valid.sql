alter table bindings
  validate constraint only_paid_ones_have_its_attribution,
  validate constraint first_payment_has_its_attribution;
