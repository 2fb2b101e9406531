-- A key that is bound later takes the mark of the person's first binding: what a founder said of another key holds for it, too. That binding
-- was marked only if the founder spoke of it.
update bindings r set reassigned_at = z.reassigned_at
  from manual_attributions m join bindings z on z.id = m.binding_id
 where m.position > 0 and z.key_source is not null and r.id = z.counts_with and r.reassigned_at is null and z.reassigned_at is not null;
