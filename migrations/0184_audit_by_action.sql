-- no-transaction
-- optional: edges serve without it
-- The changes of one kind, newest first.
create index concurrently if not exists audit_action_idx on audit (action, at desc, audit_id desc);
