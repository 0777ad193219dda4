-- People of a partner who work in the portal, their sessions, and the links by which they set a password.

create table staff_member (
  client_id uuid not null references client (client_id),
  staff_id uuid not null,
  -- keyed digest of the e-mail address, by which it is found
  email_index bytea not null,
  -- the address, sealed with the master key
  sealed_email bytea not null,
  role text not null check (role in ('owner', 'developer', 'support')),
  -- null: the invitation has not been accepted yet
  password_hash text,
  -- secret of the second factor (TOTP), sealed with the master key
  sealed_totp bytea,
  -- its first code was shown; null: not in use yet
  totp_confirmed_at timestamptz,
  -- time step of the last code that counted: each counts once
  totp_step bigint not null default 0,
  created_at timestamptz not null,
  primary key (client_id, staff_id),
  constraint staff_member_email_key unique (client_id, email_index)
);

-- A mailed link to set a password: the invitation's, or of somebody who has forgotten it.
create table staff_token (
  client_id uuid not null,
  token_digest bytea not null,
  staff_id uuid not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, token_digest),
  foreign key (client_id, staff_id) references staff_member (client_id, staff_id) on delete cascade
);
create index staff_token_staff_idx on staff_token (client_id, staff_id);
create index staff_token_expires_idx on staff_token (client_id, expires_at);

create table staff_session (
  client_id uuid not null,
  -- SHA-256 of the cookie
  session_digest bytea not null,
  staff_id uuid not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (client_id, session_digest),
  foreign key (client_id, staff_id) references staff_member (client_id, staff_id) on delete cascade
);
create index staff_session_staff_idx on staff_session (client_id, staff_id, created_at);
create index staff_session_expires_idx on staff_session (client_id, expires_at);

alter table staff_member enable row level security;
alter table staff_member force row level security;
create policy staff_member_isolation on staff_member
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy staff_member_all_tenants on staff_member using ((select sees_all_tenants()));

alter table staff_token enable row level security;
alter table staff_token force row level security;
create policy staff_token_isolation on staff_token
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy staff_token_all_tenants on staff_token using ((select sees_all_tenants()));

alter table staff_session enable row level security;
alter table staff_session force row level security;
create policy staff_session_isolation on staff_session
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy staff_session_all_tenants on staff_session using ((select sees_all_tenants()));

alter table mail_outbox drop constraint mail_outbox_kind_check;
alter table mail_outbox add constraint mail_outbox_kind_check check (
  kind in ('email-code', 'reset-password', 'webhook-disabled', 'staff-invitation', 'staff-password')
) not valid;
