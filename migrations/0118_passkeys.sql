-- Passkeys of users, and the challenges that they answer.

create table passkey (
  client_id uuid not null,
  -- the authenticator's name of the key
  credential_id bytea not null check (octet_length(credential_id) between 1 and 1023),
  user_id uuid not null,
  -- what the user calls it, sealed under the user's key
  sealed_name bytea not null,
  -- DER of a SubjectPublicKeyInfo
  public_key bytea not null check (octet_length(public_key) <= 1024),
  -- signatures that the authenticator counts; 0: it counts none
  sign_count bigint not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  primary key (client_id, credential_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index passkey_user_idx on passkey (client_id, user_id, created_at);

-- A challenge is good once: its row is deleted by who answers.
create table passkey_challenge (
  client_id uuid not null references client (client_id),
  -- SHA-256 of the challenge in base64url
  challenge_digest bytea not null,
  -- sign-in: proves a user; account: changes the passkeys of a user who has just signed in
  purpose text not null check (purpose in ('sign-in', 'account')),
  -- null: whose passkey it is decides who signs in
  user_id uuid,
  expires_at timestamptz not null,
  primary key (client_id, challenge_digest),
  foreign key (client_id, user_id) references end_user (client_id, user_id),
  check (purpose = 'sign-in' or user_id is not null)
);
create index passkey_challenge_user_idx on passkey_challenge (client_id, user_id);
create index passkey_challenge_expires_idx on passkey_challenge (client_id, expires_at);

alter table passkey enable row level security;
alter table passkey force row level security;
create policy passkey_isolation on passkey
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy passkey_all_tenants on passkey using ((select sees_all_tenants()));

alter table passkey_challenge enable row level security;
alter table passkey_challenge force row level security;
create policy passkey_challenge_isolation on passkey_challenge
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy passkey_challenge_all_tenants on passkey_challenge using ((select sees_all_tenants()));
