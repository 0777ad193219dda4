-- Events and timelines of orders are partitioned by month. Deliveries are not: the claim of the queue
-- would look at every month for every lane.
--
-- Ids are UUIDs of version 7, which begin with their time: a month is a range of ids, so the primary
-- keys stay as they are.
--
-- The tables as they are become the first partition, without a row being copied. Months are made
-- ahead by `rampart migrate`, and by a worker that may; what no month takes is in the default
-- partition.

alter table event rename to event_default;
alter table event_default rename constraint event_pkey to event_default_pkey;
alter table event_default rename constraint event_client_id_fkey to event_default_client_id_fkey;
alter index event_type_idx rename to event_default_type_idx;
alter policy event_isolation on event_default rename to event_default_isolation;
alter policy event_all_tenants on event_default rename to event_default_all_tenants;

-- A delivery is written with its event, and a month of events ends without looking for deliveries.
alter table delivery drop constraint delivery_client_id_event_id_fkey;

alter table order_transition rename to order_transition_default;
alter table order_transition_default rename constraint order_transition_pkey
  to order_transition_default_pkey;
alter table order_transition_default rename constraint order_transition_client_id_order_id_fkey
  to order_transition_default_client_id_order_id_fkey;
alter policy order_transition_isolation on order_transition_default
  rename to order_transition_default_isolation;
alter policy order_transition_all_tenants on order_transition_default
  rename to order_transition_default_all_tenants;

create table event (
  client_id uuid not null references client (client_id),
  event_id uuid not null,
  type text not null,
  order_id bigint,
  payload jsonb not null,
  created_at timestamptz not null,
  primary key (client_id, event_id)
) partition by range (event_id);
create index event_type_idx on event (client_id, type, event_id);
alter table event attach partition event_default default;

create table order_transition (
  client_id uuid not null,
  order_id bigint not null,
  transition_id uuid not null,
  at timestamptz not null,
  from_status text,
  to_status text not null,
  cause text not null,
  reason text,
  actor text not null,
  primary key (client_id, order_id, transition_id),
  foreign key (client_id, order_id) references buy_order (client_id, order_id)
) partition by range (transition_id);
alter table order_transition attach partition order_transition_default default;

alter table event enable row level security;
alter table event force row level security;
create policy event_isolation on event
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy event_all_tenants on event using ((select sees_all_tenants()));

alter table order_transition enable row level security;
alter table order_transition force row level security;
create policy order_transition_isolation on order_transition
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy order_transition_all_tenants on order_transition using ((select sees_all_tenants()));
