-- Refresh tokens of one login in two hands, and attempts that are counted for all edges together.

-- how many renewals are between the login and this token; null: issued before this was counted
alter table refresh_token add column generation integer;
-- the successor that its first use made; a repeated use makes others
alter table refresh_token add column first_successor_digest bytea;
-- the highest generation of a token that was used
alter table refresh_family add column used_generation integer not null default -1;

-- A rate limit's bucket (GCRA). Not a tenant's table: a name that is tried may be nobody's.
create table attempt_bucket (
  -- of what is limited, with its tenant where it has one
  bucket_digest bytea primary key,
  -- when it is full again
  full_at timestamptz not null
);
create index attempt_bucket_full_idx on attempt_bucket (full_at);
