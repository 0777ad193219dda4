-- no-transaction
-- optional: edges serve without it
-- Entries of no order: payments in suspense and of the house. Those of orders have an index of their own.
create index concurrently if not exists ledger_entry_no_order_idx on ledger_entry (client_id)
  where order_id is null;
