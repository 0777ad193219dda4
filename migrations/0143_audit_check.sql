-- The audit's chain, verified piece by piece by one edge at a time. Not a tenant's table; one row.
create table audit_check (
  singleton boolean primary key default true check (singleton),
  -- the edge that verifies has it until then
  claimed_until timestamptz not null,
  -- begin of the next round
  due_at timestamptz not null,
  -- the row that the round goes on behind, and its MAC
  position bigint not null default 0,
  mac bytea not null default '',
  -- the last whole round, if there was one, and the first place where the chain did not hold
  finished_at timestamptz,
  broken_position bigint,
  broken_reason text,
  created_at timestamptz not null default now()
);
insert into audit_check (claimed_until, due_at) values (now(), now());
