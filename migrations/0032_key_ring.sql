-- Keys that outlive a rotation of the master key, and how far a rotation is.

-- Derived once, by the first master key, and sealed by the one in use.
create table lasting_key (
  name text primary key,
  sealed bytea not null,
  created_at timestamptz not null
);

-- One rotation of the master key: values are sealed again, table after table, in the order of their
-- keys.
create table key_rotation (
  -- of the key that values are sealed under from then on
  key_id text primary key,
  requested_by text not null,
  requested_at timestamptz not null,
  -- null: it is under way
  finished_at timestamptz,
  -- place in the list of tables, and the last row that was looked at there
  stage integer not null,
  after_client uuid not null,
  after_row text not null,
  resealed bigint not null
);
