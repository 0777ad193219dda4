-- no-transaction
-- optional: edges serve without it
-- Open commands of a connector by partner: a lease takes turns between them.
create index concurrently if not exists command_turn_idx on command (connector, client_id, created_at, command_id)
  where state = 'open';
