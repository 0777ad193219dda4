-- Accounts that users pay from and are paid to, and the proofs that they are theirs.

create table payment_account (
  client_id uuid not null,
  user_id uuid not null,
  account_id uuid not null,
  type text not null check (type in ('bankTransfer', 'creditCard', 'walletpay')),
  -- identifier, holder and the provider's token as one JSON object under the user's key; null once
  -- erased
  sealed bytea,
  -- keyed digest of the identifier; null once erased
  identifier_index bytea,
  is_stored_card boolean not null default false,
  limit_raised boolean not null default false,
  -- null: what the limit book gives an account of its kind
  amount_limit numeric check (amount_limit >= 0),
  verified_at timestamptz,
  disabled_at timestamptz,
  last_used_at timestamptz not null,
  created_at timestamptz not null,
  primary key (client_id, user_id, account_id),
  constraint payment_account_identifier_key unique (client_id, user_id, identifier_index),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);

-- A row for every proof of ownership that came in; the image is in the object store, sealed.
create table ownership_proof (
  client_id uuid not null,
  user_id uuid not null,
  account_id uuid not null,
  proof_id uuid not null,
  media_type text not null,
  size bigint not null,
  created_at timestamptz not null,
  primary key (client_id, user_id, account_id, proof_id),
  foreign key (client_id, user_id, account_id)
    references payment_account (client_id, user_id, account_id)
);

alter table payment_account enable row level security;
create policy payment_account_isolation on payment_account
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table ownership_proof enable row level security;
create policy ownership_proof_isolation on ownership_proof
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
