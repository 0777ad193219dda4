-- no-transaction
-- The newest orders of all partners, for operators.
-- optional: edges serve without it
create index concurrently if not exists buy_order_newest_idx on buy_order
  (created_at desc, order_id desc);
