-- no-transaction
-- optional: edges serve without it
-- Commands to give back payments without an order.
create index concurrently if not exists command_refund_no_order_idx on command (client_id, state)
  where kind = 'payment.refund' and order_id is null;
