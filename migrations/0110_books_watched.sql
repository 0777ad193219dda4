-- The books, checked piece by piece by one edge at a time, and what connectors say they hold.

-- Not tenants' tables: the books of all are checked, and a connector serves all. One row.
create table ledger_check (
  singleton boolean primary key default true check (singleton),
  -- the edge that checks has it until then
  claimed_until timestamptz not null,
  -- begin of the next round
  due_at timestamptz not null,
  -- where the round goes on; null between two
  place text,
  checked bigint not null default 0,
  problems bigint not null default 0,
  first_problem text,
  -- the last whole round, if there was one
  finished_at timestamptz,
  finished_checked bigint not null default 0,
  finished_problems bigint not null default 0,
  finished_first_problem text,
  -- sums of the accounts of coins by then: {"BTC": 1.5}
  treasury jsonb not null default '{}',
  created_at timestamptz not null default now()
);
insert into ledger_check (claimed_until, due_at) values (now(), now());

-- Coins that a connector holds by its own account.
create table connector_balance (
  connector text not null references connector (name),
  asset text not null,
  amount numeric not null check (amount >= 0),
  reported_at timestamptz not null,
  primary key (connector, asset)
);

-- Payments that nobody has wanted.
create index payment_suspense_idx on payment (recorded_at desc) where suspense;
