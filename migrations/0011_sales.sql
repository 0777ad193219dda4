-- Sales: coins that arrive at a deposit address are paid out in fiat.

create table sell_order (
  client_id uuid not null references client (client_id),
  order_id bigint not null check (order_id between 1 and 9007199254740991),
  quote_id uuid not null,
  user_id uuid,
  partner_reference text,
  status text not null check (status in ('pending', 'in progress', 'blocked', 'completed', 'cancelled', 'refunded')),
  -- what brought it to its status
  status_cause text not null,
  pair text not null,
  payment_method text not null,
  -- the account that is paid out to; null: the user's choice
  account_id uuid,
  -- where the coins are to go; the tag as text, an integer on the wire for XRP
  wallet_address text not null,
  destination_tag text,
  fiat_amount numeric not null,
  fiat_currency text not null,
  crypto_amount numeric not null,
  crypto_currency text not null,
  price numeric not null,
  partner_fee numeric not null,
  partner_fee_percentage numeric not null,
  provider_fee numeric not null,
  payment_method_fee numeric not null,
  network_fee numeric not null,
  spread_fee numeric not null,
  affiliate_fee numeric not null,
  callback_url text,
  -- digest of what a repeated confirm must repeat: account, partner reference, user
  terms_digest bytea not null,
  policy_decisions jsonb not null default '[]',
  received_amount numeric,
  transaction_id text,
  -- coins that come later are late
  expires_at timestamptz not null,
  -- when the sandbox pays out
  settles_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (client_id, order_id),
  constraint sell_order_quote_id_key unique (client_id, quote_id)
);
create index sell_order_created_idx on sell_order (client_id, created_at desc, order_id desc);
create index sell_order_user_idx on sell_order (client_id, user_id, created_at desc, order_id desc)
  where user_id is not null;
create index sell_order_reference_idx on sell_order (client_id, partner_reference, created_at desc);
create index sell_order_expiry_idx on sell_order (expires_at) where status = 'pending';
create index sell_order_settles_idx on sell_order (settles_at) where settles_at is not null;

create table sell_order_transition (
  client_id uuid not null,
  order_id bigint not null,
  transition_id uuid not null,
  at timestamptz not null,
  from_status text,
  to_status text not null,
  cause text not null,
  -- who: edge or sandbox
  actor text not null,
  primary key (client_id, order_id, transition_id),
  foreign key (client_id, order_id) references sell_order (client_id, order_id)
);

alter table sell_order enable row level security;
create policy sell_order_isolation on sell_order
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table sell_order_transition enable row level security;
create policy sell_order_transition_isolation on sell_order_transition
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
