-- Operators at a browser: sessions that began with a token, and claims of what waits for a person.

alter table operator_session
  -- SHA-256 of the token that the session began with, and ends with; null for a person whom the
  -- provider has proven
  add column token_digest bytea;

-- What one operator looks at, so that no other one begins with it too.
create table review_claim (
  client_id uuid not null references client (client_id),
  subject text not null check (subject in ('user', 'order')),
  -- the user's id or the order's number
  id text not null,
  operator text not null,
  claimed_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (client_id, subject, id)
);

alter table review_claim enable row level security;
alter table review_claim force row level security;
create policy review_claim_isolation on review_claim
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy review_claim_all_tenants on review_claim using ((select sees_all_tenants()));

-- Forms of the console that were sent: each counts once. Not a tenant's table: an operator serves all.
create table operator_form (
  session_id uuid not null references operator_session (session_id) on delete cascade,
  nonce text not null,
  sent_at timestamptz not null,
  primary key (session_id, nonce)
);
