-- Webhook endpoints with secrets of their own, and the attempts of deliveries.

-- Those of one endpoint: the current one, and during a rotation the one before.
create table webhook_endpoint_secret (
  client_id uuid not null,
  secret_id uuid not null,
  endpoint_id uuid not null,
  -- sealed with the master key
  sealed bytea not null,
  -- null: the current one; otherwise the previous one, which signs until then
  valid_until timestamptz,
  created_at timestamptz not null,
  primary key (client_id, secret_id),
  foreign key (client_id, endpoint_id)
    references webhook_endpoint (client_id, endpoint_id) on delete cascade
);
create index webhook_endpoint_secret_endpoint_idx on webhook_endpoint_secret (client_id, endpoint_id);

-- the client's webhook secrets sign until then; null: for good, as the endpoint has none of its own
alter table webhook_endpoint add column client_secrets_until timestamptz;

-- What was sent, and what came back. Rows of some days.
create table delivery_attempt (
  client_id uuid not null references client (client_id),
  delivery_id uuid not null,
  attempt_id uuid not null,
  sent_at timestamptz not null,
  took_ms integer not null,
  -- of the answer, if there was one
  status smallint,
  -- null: delivered
  error text,
  -- beginning of the answer's body
  answer text,
  primary key (client_id, delivery_id, attempt_id)
);
create index delivery_attempt_sent_idx on delivery_attempt (sent_at);

alter table webhook_endpoint_secret enable row level security;
alter table webhook_endpoint_secret force row level security;
create policy webhook_endpoint_secret_isolation on webhook_endpoint_secret
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy webhook_endpoint_secret_all_tenants on webhook_endpoint_secret
  using ((select sees_all_tenants()));

alter table delivery_attempt enable row level security;
alter table delivery_attempt force row level security;
create policy delivery_attempt_isolation on delivery_attempt
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy delivery_attempt_all_tenants on delivery_attempt using ((select sees_all_tenants()));
