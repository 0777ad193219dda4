-- The sum of each account's postings up to an entry: a balance adds what came since, and need not read all postings there have ever
-- been. `treasury_place` and `treasury_settled` are for edges of the version before alone.
create table ledger_settled (
  client_id uuid not null,
  account_id uuid not null,
  amount numeric not null,
  primary key (client_id, account_id),
  foreign key (client_id, account_id) references ledger_account (client_id, account_id)
);

alter table ledger_settled enable row level security;
alter table ledger_settled force row level security;
create policy ledger_settled_isolation on ledger_settled
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy ledger_settled_all_tenants on ledger_settled using ((select sees_all_tenants()));

-- the last entry in `ledger_settled`
alter table ledger_check add column settled_place uuid not null default '00000000-0000-0000-0000-000000000000';
