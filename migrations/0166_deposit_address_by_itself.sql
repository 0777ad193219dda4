-- no-transaction
-- optional: edges serve without it
-- The sale of a deposit that names no order, whatever its asset: every address that its connector has
-- given away was read.
create index concurrently if not exists deposit_address_given_idx on deposit_address (connector, address, tag)
  where taken_by is not null;
