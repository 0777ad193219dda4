-- no-transaction
-- optional: edges serve without it
create index concurrently if not exists payment_dispute_idx on payment (client_id, order_id)
  where kind in ('disputed', 'dispute-won', 'dispute-lost');
