-- The sum of each account's postings of entries without an order, up to an entry that is settled: what a refund or a match of money
-- without an order may take adds what came since, and need not read all of it that there has ever been.
-- granted: edges use a table that is made anew
create table ledger_settled_no_order (
  client_id uuid not null,
  account_id uuid not null,
  amount numeric not null,
  primary key (client_id, account_id),
  foreign key (client_id, account_id) references ledger_account (client_id, account_id)
);

alter table ledger_settled_no_order enable row level security;
alter table ledger_settled_no_order force row level security;
create policy ledger_settled_no_order_isolation on ledger_settled_no_order
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy ledger_settled_no_order_all_tenants on ledger_settled_no_order using ((select sees_all_tenants()));

-- the last entry in `ledger_settled_no_order`: never after `settled_place`, behind which no entry comes in
alter table ledger_check add column no_order_place uuid not null default '00000000-0000-0000-0000-000000000000';
