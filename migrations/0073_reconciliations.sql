-- Statements of accounts that were laid beside the books. Not a tenant's table: an account serves all.
create table reconciliation (
  reconciliation_id uuid primary key,
  connector text not null check (connector ~ '^[a-z][a-z0-9-]{0,62}$'),
  -- lines that were payments already, and lines that became payments
  matched integer not null,
  recorded integer not null,
  -- what only one side has: the side, reference, amount and currency, without names
  differences jsonb not null,
  -- SHA-256 of the statement
  digest bytea not null,
  actor text not null,
  created_at timestamptz not null default now()
);
create index reconciliation_connector_idx on reconciliation (connector, created_at desc);
