-- The audit as a chain: every row has a position and a MAC over itself and the row before, so that a
-- row that was changed, taken out or put in is seen.

alter table audit
  -- null: from before there was a chain
  add column position bigint,
  add column mac bytea;
create unique index audit_position_key on audit (position);
alter table audit add constraint audit_chained_check check ((position is null) = (mac is null));

-- The end of the chain, one row. Whoever adds to the audit locks it.
create table audit_head (
  only_row boolean primary key default true check (only_row),
  position bigint not null,
  mac bytea not null,
  -- rows from before there was a chain
  unchained bigint not null
);
insert into audit_head (position, mac, unchained) select 0, '', count(*) from audit;

-- Rows are read and added. There is no policy for update and delete, so that they find no row.
alter table audit enable row level security;
alter table audit force row level security;
create policy audit_read on audit for select using (true);
create policy audit_append on audit for insert with check (true);
