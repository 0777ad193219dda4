-- no-transaction
-- optional: edges serve without it
-- The index of 0494 has the same entries and begins with the same column.
drop index concurrently if exists ledger_entry_no_order_idx;
