-- End users, as far as a credential needs them; what identifies a person comes encrypted, later.

create table end_user (
  client_id uuid not null references client (client_id),
  user_id uuid not null,
  level text not null default 'bronze' check (level in ('bronze', 'silver', 'gold')),
  country text,
  disabled_at timestamptz,
  deleted_at timestamptz,
  -- tokens issued before are refused
  tokens_valid_from timestamptz not null default 'epoch',
  created_at timestamptz not null,
  primary key (client_id, user_id)
);

create table user_identifier (
  client_id uuid not null,
  -- keyed digest: the identifier itself is not stored
  identifier_digest bytea not null,
  user_id uuid not null,
  created_at timestamptz not null,
  primary key (client_id, identifier_digest),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index user_identifier_user_idx on user_identifier (client_id, user_id);
