-- What is known of end users: personal values encrypted under a key of each user's own, and what is
-- kept after that key is gone.

alter table end_user
  -- random key of this user's personal values, sealed by the master key; null once erased
  add column sealed_key bytea,
  -- names, birth date, address, phone, e-mail, answers: one JSON object sealed under that key
  add column personal bytea,
  -- keyed digest of the e-mail address in small letters
  add column email_index bytea,
  -- a PHC string
  add column password_hash text,
  add column is_business boolean not null default false,
  add column newsletter boolean not null default false,
  -- website locale, such as nl-be
  add column region text,
  add column activated_at timestamptz,
  add column email_status text not null default 'pending'
    check (email_status in ('pending', 'verified', 'failed', 'blocked')),
  add column identity_status text not null default 'pending'
    check (identity_status in ('pending', 'verified', 'failed', 'blocked')),
  add column amld5_status text not null default 'pending'
    check (amld5_status in ('pending', 'verified', 'failed', 'blocked')),
  add column privacy_agreement_status text not null default 'pending'
    check (privacy_agreement_status in ('pending', 'verified', 'failed', 'blocked')),
  add column residential_address_status text not null default 'missing'
    check (residential_address_status in ('missing', 'present', 'pending', 'verified', 'failed', 'blocked')),
  add column dac8_status text not null default 'unknown'
    check (dac8_status in ('unknown', 'missing', 'pending', 'present')),
  -- limit name -> amount; absent: the level's
  add column limit_overrides jsonb not null default '{}';
create unique index end_user_email_index_key on end_user (client_id, email_index);
-- Operators name a user by the id alone.
create index end_user_id_idx on end_user (user_id);

-- What a user may trade at a verification level. The operator's, not a tenant's.
create table verification_level (
  identifier text primary key check (identifier in ('bronze', 'silver', 'gold')),
  level_id uuid not null,
  buy_limit numeric not null check (buy_limit > 0),
  sell_limit numeric not null check (sell_limit > 0),
  currency text not null references currency (code),
  constraint verification_level_level_id_key unique (level_id)
);
insert into verification_level (identifier, level_id, buy_limit, sell_limit, currency) values
  ('bronze', '0199a000-0000-7000-8000-000000000001', 1000, 1000, 'EUR'),
  ('silver', '0199a000-0000-7000-8000-000000000002', 10000, 10000, 'EUR'),
  ('gold', '0199a000-0000-7000-8000-000000000003', 100000, 100000, 'EUR');

-- Identity documents that were sent in, a row a side.
create table user_document (
  client_id uuid not null,
  user_id uuid not null,
  type text not null,
  side text not null,
  document_id uuid not null,
  status text not null check (status in ('missing', 'pending', 'verified', 'failed', 'blocked')),
  -- of the image; null while it is missing
  media_type text,
  size bigint,
  -- SHA-256 of the image, sealed under the user's key
  sealed_digest bytea,
  created_at timestamptz not null,
  primary key (client_id, user_id, type, side),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);

-- Codes that prove an e-mail address, by the address they were mailed to.
create table email_code (
  client_id uuid not null references client (client_id),
  email_index bytea not null,
  -- keyed digest of the code
  code_digest bytea not null,
  -- tries that named another code
  tries smallint not null default 0,
  expires_at timestamptz not null,
  primary key (client_id, email_index)
);
create index email_code_expires_idx on email_code (client_id, expires_at);

-- Tokens that are good for one use, by what they are good for.
create table one_time_token (
  client_id uuid not null,
  token_digest bytea not null,
  purpose text not null check (purpose in ('login', 'reset-password')),
  user_id uuid not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, token_digest),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index one_time_token_user_idx on one_time_token (client_id, user_id);
create index one_time_token_expires_idx on one_time_token (client_id, expires_at);

-- Mail to users. Address and text are sealed by the master key.
create table mail_outbox (
  client_id uuid not null references client (client_id),
  mail_id uuid not null,
  -- null: the address is nobody's
  user_id uuid,
  kind text not null check (kind in ('email-code', 'reset-password')),
  sealed bytea not null,
  -- withheld: nobody has the address, and nothing is sent to strangers
  state text not null default 'pending' check (state in ('pending', 'sent', 'withheld')),
  created_at timestamptz not null,
  primary key (client_id, mail_id)
);
create index mail_outbox_user_idx on mail_outbox (client_id, user_id);
create index mail_outbox_created_idx on mail_outbox (client_id, created_at);

alter table user_document enable row level security;
create policy user_document_isolation on user_document
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table email_code enable row level security;
create policy email_code_isolation on email_code
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table one_time_token enable row level security;
create policy one_time_token_isolation on one_time_token
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table mail_outbox enable row level security;
create policy mail_outbox_isolation on mail_outbox
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
