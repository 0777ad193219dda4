-- no-transaction
-- optional: edges serve without it
-- The books of all partners, oldest first.
create index concurrently if not exists ledger_entry_time_idx on ledger_entry (occurred_at, entry_id);
