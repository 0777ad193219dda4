-- Networks that a client's credentials are accepted from.

-- in CIDR notation; empty: any
alter table client add column allowed_addresses text[] not null default '{}';
