-- Webhook endpoints, checkouts, and what the deliveries of several endpoints need.

create table webhook_endpoint (
  client_id uuid not null references client (client_id),
  endpoint_id uuid not null,
  -- its place among the client's endpoints, which bounds how many there can be
  slot smallint not null check (slot between 1 and 10),
  url text not null,
  -- types of the events it is told of; null: all, those of the future too
  events text[],
  -- its host answered 410: nothing goes there any more
  disabled_at timestamptz,
  created_at timestamptz not null,
  primary key (client_id, endpoint_id),
  constraint webhook_endpoint_slot_key unique (client_id, slot)
);

-- null: the order's callback. No reference: what was delivered outlives its endpoint.
alter table delivery add column endpoint_id uuid;
create index delivery_event_idx on delivery (client_id, event_id);
create index event_type_idx on event (client_id, type, event_id);

alter table webhook_endpoint enable row level security;
create policy webhook_endpoint_isolation on webhook_endpoint
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

-- An offer with a page of its own.
create table checkout (
  client_id uuid not null,
  offer_id uuid not null,
  -- keyed digest of the partner's user identifier that its link carries
  identifier_digest bytea,
  -- of a finished identity check elsewhere; sealed with the master key
  sealed_share_token bytea,
  -- a user who is logged in need not confirm the quote
  attempt_direct_confirm boolean not null,
  primary key (client_id, offer_id),
  foreign key (client_id, offer_id) references offer (client_id, offer_id)
);

alter table checkout enable row level security;
create policy checkout_isolation on checkout
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
