-- The connector of a leg of an order; no row without a route. A test client's legs go only where a route names the client. It is joined,
-- so that the plan of a batch has it, and finds the routes of a leg however many others have some.
create function leg_route(of_client uuid, way text, of_method text, of_asset text)
  returns table (connector text) language sql stable as $$
  select r.connector
  from client c cross join lateral (
    select o.position, o.connector from route o
    where o.partner = c.slug and o.direction = way
      and (o.payment_method = of_method or o.asset = of_asset)
    union all
    select o.position, o.connector from route o
    where o.partner is null and c.mode = 'live' and o.direction = way
      and (o.payment_method = of_method or o.asset = of_asset)) r
  where c.client_id = of_client
  order by r.position limit 1
$$;

-- of edges of the version before
create or replace function routed_connector(client uuid, way text, of_method text, of_asset text)
  returns text language sql stable
  return (select r.connector from leg_route(client, way, of_method, of_asset) r);

create index route_leg_idx on route (partner, direction, payment_method, asset, position);
drop index route_partner_idx;
