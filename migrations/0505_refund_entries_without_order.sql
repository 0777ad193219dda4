-- no-transaction
-- optional: edges serve without it
-- Entries of what was given back and has no order: few beside those of what came in.
create index concurrently if not exists ledger_entry_refund_no_order_idx on ledger_entry (client_id)
  where kind = 'refunded' and order_id is null;
