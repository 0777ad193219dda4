-- Refunds that were taken back, because their connector has sent nothing and never will: what was set aside for them
-- is owed again.
create table payment_refund_withdrawal (
  client_id uuid not null,
  refund_id uuid not null,
  -- the part that was still set aside, and the account in which it is owed again
  amount numeric not null check (amount >= 0),
  owed_in text not null check (owed_in in ('customer', 'suspense')),
  withdrawn_at timestamptz not null default now(),
  primary key (client_id, refund_id),
  foreign key (client_id, refund_id) references payment_refund (client_id, refund_id)
);

create trigger payment_refund_withdrawal_append_only before update or delete or truncate on payment_refund_withdrawal
  for each statement execute function refuse_change();

alter table payment_refund_withdrawal enable row level security;
alter table payment_refund_withdrawal force row level security;
create policy payment_refund_withdrawal_isolation on payment_refund_withdrawal
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy payment_refund_withdrawal_all_tenants on payment_refund_withdrawal using ((select sees_all_tenants()));

-- A command names its refund by its idempotency key alone: the payment may be in another client's book.
create unique index payment_refund_command_idx on payment_refund (('refund/' || refund_id::text));

-- The part of a payment that is to be given back, or was, as a row that is planned with the statement around it. What
-- a withdrawal does not owe again was given back otherwise.
create function refund_requested(of_client uuid, payment uuid) returns table (amount numeric) language sql stable as $$
  select coalesce(sum(r.amount - coalesce(w.amount, 0)), 0) from payment_refund r
  left join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
  where r.client_id = of_client and r.payment_id = payment
$$;
