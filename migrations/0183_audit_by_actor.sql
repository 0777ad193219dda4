-- no-transaction
-- optional: edges serve without it
-- The changes of one operator, newest first.
create index concurrently if not exists audit_actor_idx on audit (actor, at desc, audit_id desc);
