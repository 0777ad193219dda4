-- no-transaction
-- optional: edges serve without it
-- An offer that an operator names, whichever partner's it is.
create index concurrently if not exists offer_id_idx on offer (offer_id);
