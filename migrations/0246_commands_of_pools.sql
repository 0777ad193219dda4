-- no-transaction
-- optional: edges serve without it
-- The last command that has filled a pool of deposit addresses.
create index concurrently if not exists command_pool_idx on command (connector, asset, created_at desc, command_id desc)
  where kind = 'deposit.address';
