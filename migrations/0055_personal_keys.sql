-- Users' keys in a table of their own, which backups leave out, and what law wants kept of users who
-- were erased.

-- The key of a user's personal values, sealed by the master key; none once erased. Not to be in a
-- backup that outlives the erasure.
create table personal_key (
  client_id uuid not null,
  user_id uuid not null,
  sealed bytea not null,
  primary key (client_id, user_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);

-- The key of what is kept of an erased user, sealed by the master key. Not to be in a backup that
-- outlives the retention.
create table retention_key (
  client_id uuid not null,
  user_id uuid not null,
  sealed bytea not null,
  primary key (client_id, user_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);

-- What law wants kept of an erased user, for a time that begins with the last order.
create table retained_record (
  client_id uuid not null,
  user_id uuid not null,
  -- one JSON object under the user's retention key
  sealed bytea not null,
  -- images in the object store that it names
  document_ids uuid[] not null,
  last_order_at timestamptz not null,
  created_at timestamptz not null,
  primary key (client_id, user_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index retained_record_last_order_idx on retained_record (last_order_at);

alter table personal_key enable row level security;
alter table personal_key force row level security;
create policy personal_key_isolation on personal_key
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy personal_key_all_tenants on personal_key using ((select sees_all_tenants()));

alter table retention_key enable row level security;
alter table retention_key force row level security;
create policy retention_key_isolation on retention_key
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy retention_key_all_tenants on retention_key using ((select sees_all_tenants()));

alter table retained_record enable row level security;
alter table retained_record force row level security;
create policy retained_record_isolation on retained_record
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy retained_record_all_tenants on retained_record using ((select sees_all_tenants()));

-- A worker moves the keys of `end_user.sealed_key`, and leaves an empty value there: an edge that
-- looks for a key there alone finds that it does not open, and makes no other one.
create index end_user_key_to_move_idx on end_user (client_id, user_id) where sealed_key <> '';
create or replace function edge_migration_min() returns bigint language sql immutable
  return 55;
