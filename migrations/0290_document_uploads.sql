-- Images that are about to be stored. The transaction of an image's own row takes its row here: one that
-- is left was stored by an edge that died, or whose commit failed, and its image is removed after an hour.
create table document_upload (
  client_id uuid not null references client (client_id),
  document_id uuid not null,
  created_at timestamptz not null,
  primary key (client_id, document_id)
);

alter table document_upload enable row level security;
alter table document_upload force row level security;
create policy document_upload_isolation on document_upload
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy document_upload_all_tenants on document_upload using ((select sees_all_tenants()));
