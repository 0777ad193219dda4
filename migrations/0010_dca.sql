-- Savings plans: what is deposited by bank transfer under a plan's code buys as it arrives.

create table dca_plan (
  client_id uuid not null,
  -- what a deposit must name
  code text not null,
  user_id uuid not null,
  -- opened through the partner, whose name is then shown
  through_partner boolean not null,
  crypto_currency text not null references currency (code),
  wallet_address text not null,
  -- as text; an integer on the wire for XRP
  destination_tag text,
  -- the account that deposits go to, as it was when the plan was opened
  bank_name text not null,
  bank_iban text not null,
  bank_bic text not null,
  name text check (char_length(name) <= 255),
  -- in smallest units of the fiat currency; shown, never acted on, as is the frequency
  intended_amount bigint check (intended_amount > 0),
  frequency text check (frequency in ('weekly', 'biweekly', 'monthly', 'quarterly', 'half_yearly')),
  hidden boolean not null default false,
  created_at timestamptz not null,
  primary key (client_id, code),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index dca_plan_created_idx on dca_plan (client_id, created_at desc, code);
create index dca_plan_user_idx on dca_plan (client_id, user_id, created_at desc, code);
-- Operators name a plan by the code alone.
create index dca_plan_code_idx on dca_plan (code);

-- A deposit and the order it became; the bank's reference tells a repeated report from a new one.
create table dca_deposit (
  client_id uuid not null,
  reference text not null,
  code text not null,
  amount numeric not null check (amount > 0),
  currency text not null references currency (code),
  order_id bigint not null,
  created_at timestamptz not null,
  primary key (client_id, reference),
  foreign key (client_id, code) references dca_plan (client_id, code),
  foreign key (client_id, order_id) references buy_order (client_id, order_id)
);
create index dca_deposit_code_idx on dca_deposit (client_id, code);

alter table dca_plan enable row level security;
create policy dca_plan_isolation on dca_plan
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table dca_deposit enable row level security;
create policy dca_deposit_isolation on dca_deposit
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
