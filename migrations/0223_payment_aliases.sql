-- The reference that a connector has by now for a payment which an earlier version of it has reported under another one: a
-- payment is one event's, and the next event that says the same is of another payment.
create table payment_alias (
  client_id uuid not null,
  payment_id uuid not null,
  provider_reference text not null check (char_length(provider_reference) between 1 and 255),
  recorded_at timestamptz not null default now(),
  primary key (client_id, payment_id),
  foreign key (client_id, payment_id) references payment (client_id, payment_id)
);

create trigger payment_alias_append_only before update or delete or truncate on payment_alias
  for each statement execute function refuse_change();

alter table payment_alias enable row level security;
alter table payment_alias force row level security;
create policy payment_alias_isolation on payment_alias
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy payment_alias_all_tenants on payment_alias using ((select sees_all_tenants()));
