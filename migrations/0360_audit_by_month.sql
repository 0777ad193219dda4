-- granted: edges use a table that is made anew
-- The audit is partitioned by month, as events are (0057): by the time in its ids. Ids ascend with
-- positions, so that each month is a piece of the chain, and a month whose retention is over can go.
--
-- The table as it is becomes the first partition, without a row being copied. Positions are unique
-- within each partition; over all of them they are given one by one, under the lock of the head.

-- The id of the last row, which that of the next one is above. Null until an edge has added one. First, as
-- edges lock the head before they add a row.
alter table audit_head add column audit_id uuid;

alter table audit rename to audit_default;
alter table audit_default rename constraint audit_pkey to audit_default_pkey;
alter index audit_position_key rename to audit_default_position_key;
alter index audit_target_idx rename to audit_default_target_idx;
alter index audit_at_idx rename to audit_default_at_idx;
alter index audit_actor_idx rename to audit_default_actor_idx;
alter index audit_action_idx rename to audit_default_action_idx;
alter policy audit_read on audit_default rename to audit_default_read;
alter policy audit_append on audit_default rename to audit_default_append;

create table audit (
  audit_id uuid not null,
  at timestamptz not null,
  actor text not null,
  action text not null,
  target text not null,
  detail jsonb not null,
  -- null: from before there was a chain
  position bigint,
  mac bytea,
  primary key (audit_id),
  constraint audit_chained_check check ((position is null) = (mac is null))
) partition by range (audit_id);
create index audit_target_idx on audit (target, at desc);
create index audit_at_idx on audit (at desc, audit_id desc);
create index audit_actor_idx on audit (actor, at desc, audit_id desc);
create index audit_action_idx on audit (action, at desc, audit_id desc);
alter table audit attach partition audit_default default;

-- Rows are read and added, as before.
alter table audit enable row level security;
alter table audit force row level security;
create policy audit_read on audit for select using (true);
create policy audit_append on audit for insert with check (true);
