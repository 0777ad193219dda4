-- Operators, and with them the two persons of an approval, are told apart by what they cannot change: at some providers people
-- choose their names.

-- The names under which people have come from the provider. One of them may be that of an operator's row: then both are one person,
-- by whatever name that person comes later. Not a tenant's table: an operator serves all.
create table operator_identity (
  -- issuer and subject
  identity text not null,
  name text not null,
  recorded_at timestamptz not null default now(),
  primary key (identity, name)
);
create index operator_identity_name_idx on operator_identity (name);

-- Issuer and subject of a person whom the provider has proven; null for a session that began with a token, or at an edge of the
-- version before, which counts for nothing that takes two persons.
alter table operator_session add column identity text;

-- Issuer and subject, the id of the operator's row, or 'admin'; null if an edge of the version before wrote it, and then names count.
alter table approval
  add column requested_by_identity text,
  add column granted_by_identity text;
