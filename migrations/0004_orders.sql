-- Offers, orders with their timeline, events and what is delivered of them.

create table offer (
  client_id uuid not null references client (client_id),
  offer_id uuid not null,
  base_currency text not null,
  quote_currency text not null,
  payment_method text,
  base_amount numeric,
  quote_amount numeric,
  return_url text,
  callback_url text,
  partner_reference text,
  wallet_address text,
  wallet_address_tag text,
  fee_percentage numeric,
  fixed_amount boolean not null,
  fixed_currency boolean not null,
  fixed_payment_method boolean not null,
  show_wallet_address boolean not null,
  -- policy, version, digest, rule and fuel of the signature's check
  signature_decision jsonb,
  expires_at timestamptz not null,
  confirmed_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, offer_id)
);

create table buy_order (
  client_id uuid not null references client (client_id),
  order_id bigint not null check (order_id between 1 and 9007199254740991),
  quote_id uuid not null,
  offer_id uuid,
  user_id uuid,
  partner_reference text,
  status text not null check (status in ('pending', 'in progress', 'blocked', 'completed', 'cancelled', 'refunded')),
  -- what brought it to its status, and the operator's words for it
  status_cause text not null default 'confirmed',
  status_reason text,
  pair text not null,
  payment_method text not null,
  wallet_address text not null,
  -- as text; an integer on the wire for XRP
  destination_tag text,
  wallet_type text not null check (wallet_type in ('vasp', 'unhosted')),
  fiat_amount numeric not null,
  fiat_currency text not null,
  crypto_amount numeric not null,
  crypto_currency text not null,
  price numeric not null,
  partner_fee numeric not null,
  partner_fee_percentage numeric,
  provider_fee numeric not null,
  payment_method_fee numeric not null,
  network_fee numeric not null,
  spread_fee numeric not null,
  affiliate_fee numeric not null,
  is_estimated_quote boolean not null,
  is_dca_order boolean not null default false,
  return_url text,
  callback_url text,
  -- digest of what a repeated confirm must repeat: wallet, tag, offer, partner reference
  terms_digest bytea not null,
  -- policy, version, digest, rule and fuel of every policy that had a say
  policy_decisions jsonb not null default '[]',
  transaction_id text,
  paid_amount numeric,
  payment_reference text,
  expires_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (client_id, order_id),
  constraint buy_order_quote_id_key unique (client_id, quote_id),
  constraint buy_order_offer_id_key unique (client_id, offer_id)
);
create index buy_order_id_idx on buy_order (order_id);
create index buy_order_created_idx on buy_order (client_id, created_at desc, order_id desc);
create index buy_order_user_idx on buy_order (client_id, user_id, created_at desc, order_id desc)
  where user_id is not null;
create index buy_order_reference_idx on buy_order (client_id, partner_reference, created_at desc);
create index buy_order_expiry_idx on buy_order (expires_at) where status = 'pending';

create table order_transition (
  client_id uuid not null,
  order_id bigint not null,
  transition_id uuid not null,
  at timestamptz not null,
  from_status text,
  to_status text not null,
  cause text not null,
  reason text,
  -- who: edge, sandbox, page, or an operator
  actor text not null,
  primary key (client_id, order_id, transition_id),
  foreign key (client_id, order_id) references buy_order (client_id, order_id)
);

-- The partner's event log, and the outbox: what is delivered, and where, follows from a row here.
create table event (
  client_id uuid not null references client (client_id),
  event_id uuid not null,
  type text not null,
  order_id bigint,
  payload jsonb not null,
  created_at timestamptz not null,
  primary key (client_id, event_id)
);

create table delivery (
  client_id uuid not null references client (client_id),
  delivery_id uuid not null,
  event_id uuid not null,
  order_id bigint,
  url text not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed', 'disabled')),
  attempts smallint not null default 0,
  next_attempt_at timestamptz not null,
  -- claimed by an edge until then
  leased_until timestamptz,
  last_status smallint,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, delivery_id),
  foreign key (client_id, event_id) references event (client_id, event_id)
);
create index delivery_due_idx on delivery (client_id, next_attempt_at) where state = 'pending';
-- for operators: by id, and newest first (ids are UUIDs of version 7)
create index delivery_id_idx on delivery (delivery_id);
create index delivery_order_idx on delivery (order_id);

-- Simulated settlement of test clients: the next event of an order, and when.
create table sandbox_step (
  client_id uuid not null,
  order_id bigint not null,
  event text not null,
  due_at timestamptz not null,
  leased_until timestamptz,
  primary key (client_id, order_id),
  foreign key (client_id, order_id) references buy_order (client_id, order_id)
);
create index sandbox_step_due_idx on sandbox_step (due_at);
