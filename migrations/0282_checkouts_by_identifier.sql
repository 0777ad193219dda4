-- no-transaction
-- optional: edges serve without it
-- Checkouts that were made for an identifier: an erasure of its user deletes what came with them.
create index concurrently if not exists checkout_identifier_idx on checkout (client_id, identifier_digest)
  where identifier_digest is not null;
