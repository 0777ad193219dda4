-- no-transaction
-- optional: edges serve without it
-- Entries of no order that are not settled yet, of one client.
create index concurrently if not exists ledger_entry_no_order_place_idx on ledger_entry (client_id, entry_id)
  where order_id is null;
