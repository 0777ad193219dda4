-- no-transaction
-- optional: edges serve without it
create index concurrently if not exists payment_match_order_id_idx on payment_match (order_id);
