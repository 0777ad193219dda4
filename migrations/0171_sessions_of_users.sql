-- no-transaction
-- optional: edges serve without it
-- The open sessions of a user, newest first.
create index concurrently if not exists refresh_family_user_idx
  on refresh_family (client_id, user_id, created_at desc)
  where user_id is not null and revoked_at is null;
