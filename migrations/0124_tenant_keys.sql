-- Keys of single tenants, which seal their values. Edges of before seal under the master key and cannot
-- open what such a key has sealed: an edge makes keys only where the database has no tenant without one,
-- or where `keys.per_tenant` says that every edge knows them.
create table tenant_key (
  client_id uuid primary key references client (client_id),
  -- wrapped by the master key
  sealed bytea not null,
  -- it seals values from then on, when every edge has loaded it; null: from the first
  usable_from timestamptz,
  created_at timestamptz not null
);

alter table tenant_key enable row level security;
alter table tenant_key force row level security;
create policy tenant_key_isolation on tenant_key
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy tenant_key_all_tenants on tenant_key using ((select sees_all_tenants()));
