-- Policies from their upload to their end: who signed them, what is tried beside the active one, and
-- what they were asked.

-- Keys of operators that sign manifests. Not a tenant's table: an operator serves all.
create table operator_key (
  name text primary key,
  -- a PEM, Ed25519
  public_key text not null,
  -- SHA-256 of that PEM, in hex: a version names the key itself, which its name may leave
  fingerprint text not null,
  created_by text not null,
  created_at timestamptz not null
);

-- Whether this client's policies must be signed; the platform may require it of all.
alter table client add column policy_signature_required boolean not null default false;

alter table policy_version
  -- its place among the activations of its kind, from 1; null: never activated
  add column activation bigint,
  -- the operator's words for it
  add column reason text,
  -- the manifest that was signed, byte for byte, by whom and with which key
  add column manifest text,
  add column signed_by text,
  add column signed_with text;
update policy_version set activation = version;

-- What is tried beside the active version, at most one of a kind.
create table policy_trial (
  client_id uuid not null references client (client_id),
  kind text not null check (kind in ('signature', 'fee', 'method-order')),
  trial_id uuid not null,
  version bigint not null,
  -- percent of the users it answers; null: none, it runs in the shadow of the active one
  share smallint check (share between 1 and 99),
  -- shadow runs of all edges: all, those that answered as the active one did, those that answered
  -- something else, those that failed, and those that an edge had no room for
  calls bigint not null default 0,
  same bigint not null default 0,
  different bigint not null default 0,
  failed bigint not null default 0,
  skipped bigint not null default 0,
  reason text,
  started_by text not null,
  started_at timestamptz not null,
  primary key (client_id, kind),
  foreign key (client_id, kind, version) references policy_version (client_id, kind, version)
);

-- A few of the shadow runs that answered something else.
create table policy_difference (
  client_id uuid not null references client (client_id),
  trial_id uuid not null,
  slot smallint not null,
  detail jsonb not null,
  at timestamptz not null,
  primary key (client_id, trial_id, slot)
);

-- A few of the questions of real traffic that name nobody (fee and method-order), for dry runs.
create table policy_sample (
  client_id uuid not null references client (client_id),
  kind text not null check (kind in ('fee', 'method-order')),
  slot smallint not null,
  input jsonb not null,
  at timestamptz not null,
  primary key (client_id, kind, slot)
);

alter table policy_trial enable row level security;
create policy policy_trial_isolation on policy_trial
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table policy_difference enable row level security;
create policy policy_difference_isolation on policy_difference
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table policy_sample enable row level security;
create policy policy_sample_isolation on policy_sample
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

create index offer_signature_decision_idx on offer (client_id, created_at desc)
  where signature_decision is not null;
create index audit_target_idx on audit (target, at desc);
