-- Users found by phone number and full name: keyed digests, as an e-mail address is found by one.

create table user_search (
  client_id uuid not null,
  kind text not null check (kind in ('phone', 'name')),
  -- keyed digest of the value in its normal form
  digest bytea not null,
  user_id uuid not null,
  primary key (client_id, kind, digest, user_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index user_search_user_idx on user_search (client_id, user_id);

alter table user_search enable row level security;
alter table user_search force row level security;
create policy user_search_isolation on user_search
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy user_search_all_tenants on user_search using ((select sees_all_tenants()));

-- A worker indexes the users of before, in the order of their keys; one row. Whoever is written
-- meanwhile is indexed by that.
create table user_search_backfill (
  only_row boolean primary key default true check (only_row),
  after_client uuid not null default '00000000-0000-0000-0000-000000000000',
  after_user uuid not null default '00000000-0000-0000-0000-000000000000',
  finished_at timestamptz
);
insert into user_search_backfill default values;
