-- The pool of addresses that users send coins to: made ahead by connectors, one for each sale.

-- No tenant's: an address is anybody's until a sale takes it.
create table deposit_address (
  connector text not null references connector (name),
  asset text not null,
  address text not null,
  -- empty without one
  tag text not null,
  added_at timestamptz not null,
  -- the client and the number of the sale; null: free
  taken_by uuid,
  taken_for bigint,
  primary key (connector, asset, address, tag),
  constraint deposit_address_taken_check check ((taken_by is null) = (taken_for is null))
);
create index deposit_address_free_idx on deposit_address (connector, asset, added_at) where taken_by is null;
create index deposit_address_taken_idx on deposit_address (taken_by, taken_for) where taken_by is not null;
