-- A statement listed what another one has as missing at the bank: that of another account in its currency at one connector, or
-- another page of its own.

-- Payments that a statement of their connector has. Not a tenant's table, as the statements are none. A payment may have
-- several kinds under one reference; the end of a payout has the kind of its begin, for both are one line.
create table reconciled_payment (
  connector text not null,
  provider_reference text not null,
  kind text not null,
  -- the first one that had it
  reconciliation_id uuid not null references reconciliation (reconciliation_id),
  primary key (connector, provider_reference, kind)
);
