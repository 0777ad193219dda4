-- no-transaction
-- optional: edges serve without it
-- A partner's orders of one status. A new order is pending, and leaves that in minutes:
-- buy_order_expiry_idx has those that have not, so that a confirm writes one index less.
create index concurrently if not exists buy_order_partner_status_idx on buy_order
  (client_id, status, created_at desc, order_id desc) where status <> 'pending';
