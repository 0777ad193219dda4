-- no-transaction
-- optional: edges serve without it
-- The addresses that the last command of a pool has brought.
create index concurrently if not exists deposit_address_added_idx on deposit_address (connector, asset, added_at);
