-- no-transaction
-- optional: edges serve without it
-- Payouts that did not leave or came back.
create index concurrently if not exists payment_returned_idx
  on payment (client_id, order_id)
  where kind in ('payout-failed', 'transfer-returned');
