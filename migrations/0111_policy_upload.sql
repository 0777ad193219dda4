-- Uploads of policies by the partners' own staff.

alter table client
  -- true if its staff may upload versions of its policies; operators activate them
  add column policy_upload_allowed boolean not null default false;

alter table policy_version
  -- most fuel that a sample burnt at its examination; null: examined before this was kept
  add column sample_fuel bigint;

-- What staff have uploaded, refused or not, for some months.
create table policy_upload (
  client_id uuid not null references client (client_id),
  upload_id uuid not null,
  staff_id uuid not null,
  kind text not null check (kind ~ '^[a-z][a-z-]{0,31}$'),
  -- SHA-256 of the component, in hex
  digest text not null,
  size bigint not null check (size >= 0),
  -- its number; null: refused, or being examined
  version bigint,
  -- the check of the examination that has refused it
  failed_check text,
  -- why it was refused
  refusal text,
  created_at timestamptz not null,
  -- null: being examined, or given up with the edge that did
  ended_at timestamptz,
  primary key (client_id, upload_id)
);
create index policy_upload_created_idx on policy_upload (client_id, created_at desc);

alter table policy_upload enable row level security;
alter table policy_upload force row level security;
create policy policy_upload_isolation on policy_upload
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy policy_upload_all_tenants on policy_upload using ((select sees_all_tenants()));
