-- The time up to which a replica has seen everything: edges write it on the primary about twice a
-- second where `database.replica_urls` names replicas, and read it on each of them.
create table replication_mark (
  only_row boolean primary key default true check (only_row),
  marked_at timestamptz not null
);
insert into replication_mark (marked_at) values (now());
