-- Sessions of operators who have logged in at an OpenID Connect provider.

-- Not a tenant's table: an operator serves all.
create table operator_session (
  session_id uuid primary key,
  -- SHA-256 of the cookie
  digest bytea not null,
  name text not null,
  -- as the provider named them at the login
  roles text[] not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  constraint operator_session_digest_key unique (digest),
  constraint operator_session_roles_check check (
    cardinality(roles) > 0
    and roles <@ array['viewer', 'support', 'compliance', 'treasury', 'platform', 'owner']
  )
);
create index operator_session_name_idx on operator_session (name, created_at);
create index operator_session_expires_idx on operator_session (expires_at);
