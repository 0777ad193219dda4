-- no-transaction
-- optional: edges serve without it
-- A page of the books begins behind an entry, which is named without its book.
create index concurrently if not exists ledger_entry_id_idx on ledger_entry (entry_id);
