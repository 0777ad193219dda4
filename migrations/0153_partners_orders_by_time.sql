-- no-transaction
-- optional: edges serve without it
-- A partner's orders by time. The newest come last among the partner's: pages are filled, and not split in halves as where the
-- newest came first. A list of the newest first reads it backwards.
create index concurrently if not exists buy_order_partner_created_idx on buy_order (client_id, created_at, order_id);
