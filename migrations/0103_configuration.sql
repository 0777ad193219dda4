-- The configuration that operators applied last, as a whole: what has become different since is drift.
create table applied_configuration (
  only_row boolean primary key default true check (only_row),
  -- values of the members that it names, by subject and member, as they were stored
  members jsonb not null,
  applied_by text not null,
  applied_at timestamptz not null,
  -- members that differ, and the revisions of clients and catalogue at which they were counted
  drift integer not null default 0 check (drift >= 0),
  counted_at_revision bigint not null default 0
);
