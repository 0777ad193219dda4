-- no-transaction
-- optional: edges serve without it
-- Operators name an order, and a payment, without its client.
create index concurrently if not exists payment_order_id_idx on payment (order_id)
  where order_id is not null;
