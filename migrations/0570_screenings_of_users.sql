-- no-transaction
-- optional: edges serve without it
-- Most screenings are of wallets: the constraint's index has an entry for each of them.
create unique index concurrently if not exists screening_user_idx
  on screening (client_id, user_id) where user_id is not null;
