-- Authenticator apps of users: a second factor beside the password, on the pages for shoppers.
create table authenticator_app (
  client_id uuid not null,
  user_id uuid not null,
  -- what the app and the edge share, sealed under the user's key
  sealed_secret bytea not null,
  -- null: not in use, the user has entered no code of it yet
  confirmed_at timestamptz,
  -- a code counts once: the time step of the last one that did
  last_step bigint not null default 0,
  primary key (client_id, user_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);

alter table authenticator_app enable row level security;
alter table authenticator_app force row level security;
create policy authenticator_app_isolation on authenticator_app
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy authenticator_app_all_tenants on authenticator_app using ((select sees_all_tenants()));
