-- no-transaction
-- A partner's orders of one status, and those of every partner.
-- optional: edges serve without it
create index concurrently if not exists buy_order_status_idx on buy_order
  (client_id, status, created_at desc, order_id desc);
