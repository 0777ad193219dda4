-- Operators with roles and tokens of their own, and the changes that wait for a second person.

-- Not tenants' tables: an operator serves all.
create table operator (
  operator_id uuid primary key,
  name text not null,
  roles text[] not null,
  -- null: may log in
  disabled_at timestamptz,
  created_by text not null,
  created_at timestamptz not null,
  constraint operator_name_key unique (name),
  constraint operator_roles_check check (
    cardinality(roles) > 0
    and roles <@ array['viewer', 'support', 'compliance', 'treasury', 'platform', 'owner']
  )
);

-- Several may be live at once, so that one follows another without a gap.
create table operator_token (
  operator_id uuid not null references operator (operator_id),
  token_id uuid not null,
  -- SHA-256 of the token
  digest bytea not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  created_by text not null,
  created_at timestamptz not null,
  primary key (operator_id, token_id),
  constraint operator_token_digest_key unique (digest)
);

-- A call that one operator has made and another one must agree to before it is carried out.
create table approval (
  approval_id uuid primary key,
  -- SHA-256 of method, path, query and body: the approval is for this call and no other
  digest bytea not null,
  method text not null,
  -- the row of the table of endpoints, which says who may agree
  route text not null,
  path text not null,
  -- the body, sealed, for the second person to read; null for bytes, which the digest names
  sealed_body bytea,
  requested_by text not null,
  requested_at timestamptz not null,
  expires_at timestamptz not null,
  granted_by text,
  refused_by text,
  decided_at timestamptz,
  -- when the call was carried out; an approval is for one attempt
  used_at timestamptz,
  constraint approval_decision_check check (granted_by is null or refused_by is null)
);
create unique index approval_open_key on approval (requested_by, digest)
  where used_at is null and refused_by is null;
create index approval_expires_idx on approval (expires_at);

-- True if a change of this client's active policies needs a second person.
alter table client add column policy_approval_required boolean not null default false;
