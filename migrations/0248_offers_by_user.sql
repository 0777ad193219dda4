-- no-transaction
-- optional: edges serve without it
-- Offers of a user who is erased: all of the partner's were read.
create index concurrently if not exists offer_user_idx on offer (client_id, user_id)
  where user_id is not null;
