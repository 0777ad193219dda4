-- no-transaction
-- optional: edges serve without it
-- Messages for wallets to sign, by their end: what has expired is deleted.
create index concurrently if not exists wallet_challenge_expires_idx on wallet_challenge (expires_at);
