-- Connectors: programs that each talk to one provider. They take commands and report events.

-- Not tenants' tables: a connector serves all.
create table connector (
  name text primary key,
  -- kinds of the commands that it takes
  capabilities text[] not null,
  -- payment methods and assets that it says it serves, for operators; routes decide
  methods text[] not null default '{}',
  assets text[] not null default '{}',
  last_contact_at timestamptz,
  -- results so far that were not done
  failures bigint not null default 0,
  created_by text not null,
  created_at timestamptz not null,
  constraint connector_capabilities_check check (cardinality(capabilities) > 0)
);

-- Several may be live at once, so that one follows another without a gap.
create table connector_token (
  connector text not null references connector (name),
  token_id uuid not null,
  -- SHA-256 of the token
  digest bytea not null,
  -- null: the newest one, which has no end
  expires_at timestamptz,
  created_by text not null,
  created_at timestamptz not null,
  primary key (connector, token_id),
  constraint connector_token_digest_key unique (digest)
);

-- Which connector moves money of a payment method, or coins of an asset. The first match counts.
create table route (
  position integer primary key,
  -- null: every live partner
  partner text references client (slug),
  payment_method text,
  asset text,
  -- in: money or coins that users send; out: those that are sent to them
  direction text not null check (direction in ('in', 'out')),
  connector text not null references connector (name),
  constraint route_subject_check check ((payment_method is null) <> (asset is null))
);

-- The connector of a leg of an order; null without a route. A test client's legs go only where a route
-- names the client: a simulated payment must never have real coins sent.
create function routed_connector(client uuid, way text, of_method text, of_asset text)
  returns text language sql stable
  return (
    select r.connector from route r join client c on c.client_id = client
    where r.direction = way and (r.partner = c.slug or (r.partner is null and c.mode = 'live'))
      and (r.payment_method = of_method or r.asset = of_asset)
    order by r.position limit 1);

-- An effect on the outside, repeated until a connector has acknowledged it.
create table command (
  client_id uuid not null references client (client_id),
  command_id uuid not null,
  kind text not null,
  order_id bigint,
  -- names the effect for good: it is commanded once
  idempotency_key text not null,
  -- the leg that its route is looked up by; without one any connector of its kind takes it
  direction text,
  payment_method text,
  asset text,
  -- follows the routes until it is leased for the first time, and stays from then on; null: there is no
  -- route, or no leg
  connector text references connector (name),
  sealed_body bytea not null,
  state text not null default 'open' check (state in ('open', 'done', 'rejected')),
  -- leases so far
  attempt integer not null default 0,
  -- results so far that asked for another attempt
  retries integer not null default 0,
  due_at timestamptz not null,
  lease_token uuid,
  lease_seconds integer,
  leased_until timestamptz,
  -- JSON of the connector's own
  checkpoint text,
  -- of the last result, by which its repetition is known
  result_digest bytea,
  sealed_result bytea,
  created_at timestamptz not null,
  finished_at timestamptz,
  primary key (client_id, command_id),
  constraint command_idempotency_key_key unique (client_id, idempotency_key)
);
create index command_open_idx on command (connector, created_at, command_id) where state = 'open';
create index command_id_idx on command (command_id);
create index command_order_idx on command (client_id, order_id, created_at, command_id)
  where order_id is not null;

alter table command enable row level security;
alter table command force row level security;
create policy command_isolation on command
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy command_all_tenants on command using ((select sees_all_tenants()));

-- A report of a connector, taken once. No tenant's: it is known by its connector's id for it.
create table connector_event (
  connector text not null references connector (name),
  event_id text not null,
  -- names its sealed report
  report_id uuid not null,
  kind text not null,
  -- SHA-256 of the report
  digest bytea not null,
  sealed_report bytea not null,
  occurred_at timestamptz not null,
  recorded_at timestamptz not null,
  primary key (connector, event_id),
  constraint connector_event_report_id_key unique (report_id)
);
