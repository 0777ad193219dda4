-- no-transaction
-- optional: edges serve without it
-- Orders that are neither pending, completed nor cancelled, of all partners: few, and none that a confirm writes.
create index concurrently if not exists buy_order_under_way_idx on buy_order
  (status, created_at desc, order_id desc) where status not in ('pending', 'completed', 'cancelled');
