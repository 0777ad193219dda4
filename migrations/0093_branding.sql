-- The partner's appearance on the pages for shoppers.

alter table client
  -- of links and main buttons
  add column accent_color text check (accent_color ~ '^#[0-9a-f]{6}$'),
  add column support_url text,
  add column privacy_url text,
  add column terms_url text,
  -- SHA-256 of the logo; null: none
  add column logo_digest bytea;

-- Apart from its client, which every edge keeps in memory.
create table client_logo (
  client_id uuid primary key references client (client_id),
  -- written anew by an edge
  png bytea not null,
  created_at timestamptz not null
);

alter table client_logo enable row level security;
alter table client_logo force row level security;
create policy client_logo_isolation on client_logo
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy client_logo_all_tenants on client_logo using ((select sees_all_tenants()));
