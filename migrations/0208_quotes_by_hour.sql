-- Numbers of quotes by hour and side: quotes are sealed and stored nowhere, so this is what orders are compared with. The
-- operator's, not a tenant's. Edges add to it every few seconds.
create table quote_hour (
  hour timestamptz not null,
  side text not null check (side in ('buy', 'sell')),
  quotes bigint not null check (quotes > 0),
  primary key (hour, side)
);
