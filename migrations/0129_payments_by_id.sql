-- no-transaction
-- optional: edges serve without it
create index concurrently if not exists payment_id_idx on payment (payment_id);
