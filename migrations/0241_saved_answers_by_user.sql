-- no-transaction
-- optional: edges serve without it
-- Saved answers of a user who is erased: all of the partner's were read.
create index concurrently if not exists idempotency_key_user_idx on idempotency_key (client_id, user_id)
  where user_id is not null;
