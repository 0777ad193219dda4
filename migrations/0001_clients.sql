-- API clients (the partners), what they prove themselves with, and how edges learn of changes.

create table client (
  client_id uuid primary key,
  slug text not null,
  name text not null,
  mode text not null check (mode in ('test', 'live')),
  status text not null default 'active' check (status in ('active', 'suspended')),
  username text not null,
  default_fee_percentage numeric not null default 0,
  fee_cap_percentage numeric not null default 5,
  wallet_address_required boolean not null default false,
  -- empty: every country
  allowed_countries text[] not null default '{}',
  -- bucket -> "50/s burst 100"; absent: the edge's default
  rate_limits jsonb not null default '{}',
  -- tokens issued before are refused
  tokens_valid_from timestamptz not null default 'epoch',
  -- value of change_counter('clients') at the last change of anything of this client
  revision bigint not null,
  created_at timestamptz not null,
  constraint client_slug_key unique (slug),
  constraint client_username_key unique (username)
);
create index client_revision_idx on client (revision);

-- Edges poll this and load what is newer than what they have.
create table change_counter (
  scope text primary key check (scope in ('clients', 'catalogue')),
  revision bigint not null
);
insert into change_counter (scope, revision) values ('clients', 1), ('catalogue', 1);

-- Used only while no keys.master is configured.
create table edge_key (
  name text primary key,
  value bytea not null,
  created_at timestamptz not null
);

create table client_secret (
  client_id uuid not null references client (client_id),
  secret_id uuid not null,
  kind text not null check (kind in ('password', 'signing', 'webhook')),
  -- password: a PHC string; signing and webhook: sealed with the master key
  password_hash text,
  sealed bytea,
  -- null: the current one; otherwise a previous one that is live until then
  valid_until timestamptz,
  created_at timestamptz not null,
  primary key (client_id, secret_id),
  check ((kind = 'password') = (password_hash is not null)),
  check ((kind = 'password') = (sealed is null))
);
create unique index client_secret_current_key on client_secret (client_id, kind) where valid_until is null;

create table api_key (
  client_id uuid not null references client (client_id),
  api_key_id uuid not null,
  -- the <id> in rk_test_<id>_<secret>
  public_id text not null,
  secret_digest bytea not null,
  name text not null default '',
  scopes text[] not null default '{}',
  -- CIDR; empty: from everywhere
  allowed_addresses text[] not null default '{}',
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, api_key_id),
  constraint api_key_public_id_key unique (client_id, public_id)
);

-- Keys that a signature policy may name; it never sees them.
create table verification_key (
  client_id uuid not null references client (client_id),
  name text not null,
  algorithm text not null,
  sealed bytea not null,
  created_at timestamptz not null,
  primary key (client_id, name)
);

-- The refresh tokens that descend from one login: presenting a used one ends them all.
create table refresh_family (
  client_id uuid not null references client (client_id),
  family_id uuid not null,
  -- null: the client itself
  user_id uuid,
  revoked_at timestamptz,
  -- when its last token ends; nothing of it counts after that
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (client_id, family_id)
);
create index refresh_family_expires_idx on refresh_family (client_id, expires_at);

create table refresh_token (
  client_id uuid not null references client (client_id),
  token_digest bytea not null,
  family_id uuid not null,
  user_id uuid,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, token_digest),
  foreign key (client_id, family_id) references refresh_family (client_id, family_id)
    on delete cascade
);
create index refresh_token_family_idx on refresh_token (client_id, family_id);
create index refresh_token_expires_idx on refresh_token (client_id, expires_at);

create table policy_component (
  digest text primary key,
  component bytea not null,
  created_at timestamptz not null
);

-- Every policy ever active. A version never changes but for the two flags.
create table policy_version (
  client_id uuid not null references client (client_id),
  kind text not null check (kind in ('signature', 'fee', 'method-order')),
  version bigint not null,
  digest text not null references policy_component (digest),
  size bigint not null,
  info jsonb not null,
  -- an object; what each member must be stands in info
  config jsonb not null default '{}',
  fail_closed boolean not null default false,
  active boolean not null,
  -- the operator went back from it: it is nobody's previous version any more
  rolled_back boolean not null default false,
  created_by text not null,
  created_at timestamptz not null,
  primary key (client_id, kind, version)
);
create unique index policy_version_active_key on policy_version (client_id, kind) where active;

-- Replay tokens of signed payloads that were accepted.
create table signature_replay (
  client_id uuid not null references client (client_id),
  token_digest bytea not null,
  expires_at timestamptz not null,
  primary key (client_id, token_digest)
);
create index signature_replay_expires_idx on signature_replay (expires_at);

create table idempotency_key (
  client_id uuid not null references client (client_id),
  route text not null,
  key text not null,
  body_digest bytea not null,
  -- null while the first request runs
  status smallint,
  body bytea,
  claimed_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (client_id, route, key)
);
create index idempotency_key_expires_idx on idempotency_key (expires_at);

-- What operators did. Not a tenant's table: a row may concern no client.
create table audit (
  audit_id uuid primary key,
  at timestamptz not null,
  actor text not null,
  action text not null,
  target text not null,
  detail jsonb not null
);
