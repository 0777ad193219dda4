-- Statements that operators signed: each is used once. Not a tenant's table: one about an operator's key
-- concerns no client.
create table signed_change (
  -- SHA-256 of the statement, in hex
  digest text primary key,
  statement text not null,
  -- name and fingerprint of the operator's key
  signed_by text not null,
  signed_with text not null,
  at timestamptz not null
);
