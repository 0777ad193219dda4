-- no-transaction
-- optional: edges serve without it
-- Offers that nobody has confirmed, by their end: old ones are deleted (retention.offer_days).
create index concurrently if not exists offer_unconfirmed_idx on offer (expires_at)
  where confirmed_at is null;
