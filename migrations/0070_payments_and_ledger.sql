-- Payments as providers and operators report them, and the books: double entry, one book per client and
-- currency or asset. Rows are added and never changed, which triggers enforce.

set local rampart.all_tenants = 'on';

-- The tenant of money that belongs to nobody yet.
with revised as (
  update change_counter set revision = revision + 1 where scope = 'clients' returning revision
)
insert into client (client_id, slug, name, mode, status, username, revision, created_at)
select '00000000-0000-7000-8000-000000000001', 'house', 'House', 'test', 'suspended', 'house', revision, now()
from revised
on conflict do nothing;

create table payment (
  client_id uuid not null references client (client_id),
  payment_id uuid not null,
  -- the program that reported it; `manual` is an operator, `sandbox` runs inside
  connector text not null check (connector ~ '^[a-z][a-z0-9-]{0,62}$'),
  provider_reference text not null check (char_length(provider_reference) between 1 and 255),
  kind text not null check (kind in (
    'received', 'refunded', 'disputed', 'dispute-won', 'dispute-lost', 'payout-sent', 'payout-confirmed',
    'payout-failed', 'deposit-received', 'transfer-sent', 'transfer-completed', 'transfer-returned')),
  amount numeric not null check (amount > 0),
  -- a currency's code, or an asset's code or CAIP-19 id
  currency text not null check (char_length(currency) between 1 and 255),
  -- the order that it names, bought or sold
  order_id bigint,
  -- booked to suspense: it has no order, or its order does not want it
  suspense boolean not null,
  actor text not null,
  reason text,
  occurred_at timestamptz not null,
  recorded_at timestamptz not null default now(),
  primary key (client_id, payment_id)
);
-- A provider's reference is its own, whichever tenant it is for.
create unique index payment_reference_key on payment (connector, kind, provider_reference);
create index payment_order_idx on payment (client_id, order_id) where order_id is not null;
create index payment_recorded_idx on payment (recorded_at desc, payment_id desc);

-- The order that an operator has matched a payment in suspense to.
create table payment_match (
  client_id uuid not null,
  payment_id uuid not null,
  -- a payment without a tenant is matched into another tenant's book
  to_client_id uuid not null references client (client_id),
  order_id bigint not null,
  actor text not null,
  matched_at timestamptz not null default now(),
  primary key (client_id, payment_id),
  foreign key (client_id, payment_id) references payment (client_id, payment_id)
);
create index payment_match_order_idx on payment_match (to_client_id, order_id);

-- A refund that a connector is asked for, or an operator has decided on.
create table payment_refund (
  client_id uuid not null,
  refund_id uuid not null,
  payment_id uuid not null,
  amount numeric not null check (amount > 0),
  actor text not null,
  reason text,
  requested_at timestamptz not null default now(),
  primary key (client_id, refund_id),
  foreign key (client_id, payment_id) references payment (client_id, payment_id)
);
create index payment_refund_payment_idx on payment_refund (client_id, payment_id);

-- The report as it came, sealed: it may name people, and goes when they must be forgotten.
create table payment_report (
  client_id uuid not null,
  payment_id uuid not null,
  sealed bytea not null,
  primary key (client_id, payment_id),
  foreign key (client_id, payment_id) references payment (client_id, payment_id)
);

create table ledger_account (
  client_id uuid not null references client (client_id),
  account_id uuid not null,
  kind text not null check (kind in (
    'provider', 'customer', 'suspense', 'conversion', 'treasury', 'fee_partner', 'fee_provider',
    'fee_payment_method', 'fee_network', 'spread', 'refund_payable', 'payout_payable', 'dispute')),
  currency text not null,
  -- the connector of a provider's account; empty for all others
  holder text not null,
  primary key (client_id, account_id),
  constraint ledger_account_holder_key unique (client_id, kind, currency, holder)
);

create table ledger_entry (
  client_id uuid not null references client (client_id),
  entry_id uuid not null,
  kind text not null check (kind ~ '^[a-z][a-z-]{0,31}$'),
  order_id bigint,
  payment_id uuid,
  occurred_at timestamptz not null,
  recorded_at timestamptz not null default now(),
  primary key (client_id, entry_id)
);
create index ledger_entry_order_idx on ledger_entry (client_id, order_id) where order_id is not null;
create index ledger_entry_payment_idx on ledger_entry (client_id, payment_id) where payment_id is not null;
create index ledger_entry_occurred_idx on ledger_entry (client_id, occurred_at, entry_id);

create table ledger_posting (
  client_id uuid not null,
  entry_id uuid not null,
  line smallint not null check (line > 0),
  account_id uuid not null,
  -- a debit is positive
  amount numeric not null check (amount <> 0),
  primary key (client_id, entry_id, line),
  foreign key (client_id, entry_id) references ledger_entry (client_id, entry_id),
  foreign key (client_id, account_id) references ledger_account (client_id, account_id)
);
create index ledger_posting_account_idx on ledger_posting (client_id, account_id);

-- The account of these attributes has this id, so that two statements that open it at once agree.
create function ledger_account_id(client uuid, kind text, currency text, holder text) returns uuid
  language sql immutable
  return substr(encode(sha256(convert_to(
    concat_ws('/', client::text, kind, currency, holder), 'UTF8')), 'hex'), 1, 32)::uuid;

create function ledger_entry_must_balance() returns trigger language plpgsql as $$
begin
  if exists (
    select from ledger_posting p
    join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
    where p.client_id = new.client_id and p.entry_id = new.entry_id
    group by a.currency having sum(p.amount) <> 0
  ) or not exists (
    select from ledger_posting p where p.client_id = new.client_id and p.entry_id = new.entry_id
  ) then
    raise exception 'ledger entry % does not balance', new.entry_id
      using errcode = '23514', constraint = 'ledger_posting_balance_check', table = 'ledger_posting';
  end if;
  return null;
end $$;
create constraint trigger ledger_posting_balance_check after insert on ledger_posting
  deferrable initially deferred for each row execute function ledger_entry_must_balance();

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are never changed', tg_table_name using errcode = '42501';
end $$;
create trigger payment_append_only before update or delete or truncate on payment
  for each statement execute function refuse_change();
create trigger payment_match_append_only before update or delete or truncate on payment_match
  for each statement execute function refuse_change();
create trigger payment_refund_append_only before update or delete or truncate on payment_refund
  for each statement execute function refuse_change();
create trigger ledger_account_append_only before update or delete or truncate on ledger_account
  for each statement execute function refuse_change();
create trigger ledger_entry_append_only before update or delete or truncate on ledger_entry
  for each statement execute function refuse_change();
create trigger ledger_posting_append_only before update or delete or truncate on ledger_posting
  for each statement execute function refuse_change();

alter table payment enable row level security;
alter table payment force row level security;
create policy payment_isolation on payment
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy payment_all_tenants on payment using ((select sees_all_tenants()));

alter table payment_match enable row level security;
alter table payment_match force row level security;
create policy payment_match_isolation on payment_match
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy payment_match_all_tenants on payment_match using ((select sees_all_tenants()));

alter table payment_refund enable row level security;
alter table payment_refund force row level security;
create policy payment_refund_isolation on payment_refund
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy payment_refund_all_tenants on payment_refund using ((select sees_all_tenants()));

alter table payment_report enable row level security;
alter table payment_report force row level security;
create policy payment_report_isolation on payment_report
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy payment_report_all_tenants on payment_report using ((select sees_all_tenants()));

alter table ledger_account enable row level security;
alter table ledger_account force row level security;
create policy ledger_account_isolation on ledger_account
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy ledger_account_all_tenants on ledger_account using ((select sees_all_tenants()));

alter table ledger_entry enable row level security;
alter table ledger_entry force row level security;
create policy ledger_entry_isolation on ledger_entry
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy ledger_entry_all_tenants on ledger_entry using ((select sees_all_tenants()));

alter table ledger_posting enable row level security;
alter table ledger_posting force row level security;
create policy ledger_posting_isolation on ledger_posting
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy ledger_posting_all_tenants on ledger_posting using ((select sees_all_tenants()));

-- Amounts of orders are positive, and obey the fee identity to the smallest unit of the currency.
create function order_amounts_hold(fiat numeric, fees numeric, worth numeric, currency text)
  returns boolean language sql immutable
  return fiat - fees = round(worth, case
    when currency in ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND',
      'VUV', 'XAF', 'XOF', 'XPF') then 0
    when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then 3
    else 2 end);
alter table buy_order
  add constraint buy_order_amounts_check check (fiat_amount > 0 and crypto_amount > 0 and price > 0) not valid,
  add constraint buy_order_identity_check check (order_amounts_hold(fiat_amount,
    partner_fee + provider_fee + payment_method_fee + network_fee + spread_fee + affiliate_fee,
    crypto_amount * price, fiat_currency)) not valid;
alter table sell_order
  add constraint sell_order_amounts_check check (fiat_amount > 0 and crypto_amount > 0 and price > 0) not valid,
  add constraint sell_order_identity_check check (order_amounts_hold(fiat_amount,
    -(partner_fee + provider_fee + payment_method_fee + network_fee + spread_fee + affiliate_fee),
    crypto_amount * price, fiat_currency)) not valid;
