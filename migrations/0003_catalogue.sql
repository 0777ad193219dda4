-- What can be traded, how it is paid, and what it costs. The operator's, not a tenant's.

create table currency (
  code text primary key,
  kind text not null check (kind in ('fiat', 'crypto')),
  ticker text not null,
  name text not null,
  decimals smallint not null check (decimals between 0 and 18),
  caip19 text not null,
  -- crypto only
  chain text,
  chain_name text,
  address_explorer text,
  transaction_explorer text,
  supports_tag boolean not null default false,
  constraint currency_caip19_key unique (caip19),
  check ((kind = 'crypto') = (chain is not null))
);

create table currency_pair (
  pair text primary key,
  base_currency text not null references currency (code),
  quote_currency text not null references currency (code),
  buy_status text not null default 'enabled' check (buy_status in ('enabled', 'disabled', 'maintenance')),
  buy_min numeric not null check (buy_min > 0),
  buy_max numeric not null,
  sell_status text not null default 'enabled' check (sell_status in ('enabled', 'disabled', 'maintenance')),
  sell_min numeric not null check (sell_min > 0),
  sell_max numeric not null,
  spread_percentage numeric not null default 0 check (spread_percentage between 0 and 20),
  network_fee numeric not null default 0 check (network_fee >= 0),
  provider_fee_percentage numeric not null default 0 check (provider_fee_percentage between 0 and 20),
  -- null: the edge's default
  quote_lifetime_seconds integer check (quote_lifetime_seconds between 1 and 3600),
  price_max_age_seconds integer check (price_max_age_seconds > 0),
  check (buy_min <= buy_max and sell_min <= sell_max)
);

create table price (
  pair text primary key references currency_pair (pair),
  price numeric not null check (price > 0),
  -- set by the operator: does not age unless the pair says so
  fixed boolean not null default true,
  observed_at timestamptz not null
);

create table payment_method (
  code text primary key,
  label text not null,
  psp text not null,
  kind text not null check (kind in ('card', 'bank-transfer', 'wallet', 'instant-transfer', 'cash', 'other')),
  amount_limit numeric not null check (amount_limit > 0),
  fee_fixed numeric not null default 0 check (fee_fixed >= 0),
  fee_percentage numeric not null default 0 check (fee_percentage between 0 and 20),
  expiration_period_seconds integer not null check (expiration_period_seconds > 0),
  open_in_new_tab boolean not null default false,
  uses_estimated_quote boolean not null default false,
  enabled boolean not null default true,
  context jsonb not null default '[]',
  -- order when nothing else decides
  position smallint not null
);

-- Methods that users of a country prefer, best first; the rest follows in the default order.
create table payment_method_preference (
  country text primary key,
  methods text[] not null
);

create table supported_region (
  region text primary key,
  position smallint not null
);

create table nationality (
  code text primary key,
  name text not null,
  id_selfie_required boolean not null default false
);
