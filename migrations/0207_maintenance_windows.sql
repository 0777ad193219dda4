-- Times in which a pair or a payment method is closed for maintenance, beside its own status. The operator's, not a tenant's.
-- Edges of the version before know of none and serve on.
create table maintenance_window (
  window_id uuid primary key,
  -- one of both
  pair text references currency_pair (pair),
  payment_method text references payment_method (code),
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  reason text not null check (char_length(reason) between 1 and 255),
  created_by text not null,
  created_at timestamptz not null default rampart_now(),
  -- true once a revision of the catalogue tells of it
  has_begun boolean not null default false,
  has_ended boolean not null default false,
  constraint maintenance_window_subject_check check ((pair is null) <> (payment_method is null)),
  constraint maintenance_window_ends_at_check check (ends_at > starts_at)
);

-- Those that have not ended: every load of the catalogue and every turn of the worker looks for them.
create index maintenance_window_open_idx on maintenance_window (starts_at) where not has_ended;
-- The list of all.
create index maintenance_window_start_idx on maintenance_window (starts_at desc, window_id desc);
