-- The user of whom a saved answer tells: it is deleted with the user.
alter table idempotency_key add column user_id uuid;
