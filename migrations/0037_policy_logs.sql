-- Validity of the keys that signature policies name: outside it a signature is refused.
alter table verification_key
  add column not_before timestamptz,
  add column not_after timestamptz;

-- What partners' policies logged in live calls: the newest lines of each kind.
create table policy_log (
  client_id uuid not null references client (client_id),
  kind text not null,
  slot smallint not null,
  version bigint not null,
  request_id text not null,
  -- of objects with level and text
  lines jsonb not null,
  -- lines over the limits of one call, and calls whose lines were not stored since the last row
  lines_dropped bigint not null default 0,
  calls_dropped bigint not null default 0,
  at timestamptz not null,
  primary key (client_id, kind, slot)
);

alter table policy_log enable row level security;
create policy policy_log_isolation on policy_log
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
