-- What providers tell of refunds that an operator's event of an order has booked before: the money has left once. A provider may
-- tell of one in parts, each under a reference of its own.
create table refund_confirmation (
  client_id uuid not null,
  -- the refund as the event has booked it
  payment_id uuid not null,
  connector text not null check (connector ~ '^[a-z][a-z0-9-]{0,62}$'),
  provider_reference text not null check (char_length(provider_reference) between 1 and 255),
  amount numeric not null check (amount > 0),
  occurred_at timestamptz not null,
  recorded_at timestamptz not null default now(),
  -- of coins two may tell by one transaction, each of a part
  primary key (client_id, payment_id, connector, provider_reference),
  foreign key (client_id, payment_id) references payment (client_id, payment_id)
);
-- A provider's reference confirms one refund, whichever tenant it is for.
create unique index refund_confirmation_reference_key on refund_confirmation (connector, provider_reference);

create trigger refund_confirmation_append_only before update or delete or truncate on refund_confirmation
  for each statement execute function refuse_change();

alter table refund_confirmation enable row level security;
alter table refund_confirmation force row level security;
create policy refund_confirmation_isolation on refund_confirmation
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy refund_confirmation_all_tenants on refund_confirmation using ((select sees_all_tenants()));
