-- What stands for an erased key of a customer says that it is one. The check of the rows is in the next file.
alter table erased_identifiers
  drop constraint erased_identifiers_pseudonym_check,
  add constraint erased_identifiers_pseudonym_check check (pseudonym ~ '^erased:(customer:)?[0-9A-Za-z_-]{22}$') not valid;
