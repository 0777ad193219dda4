-- Orders that a client was paid for before it went live go on as a test client's: a route for live ones sends them nothing.

-- null: it is not live, or was live from the beginning
alter table client add column live_since timestamptz;

-- By whom an order of this time is paid out: of a test client the sandbox is the last route, behind those that name it.
create function payout_route(of_client uuid, ordered_at timestamptz, of_method text, of_asset text)
returns table (is_of_test boolean, is_routed boolean) language sql stable as $$
  select ordered.is_of_test, exists (
    select from route r
    where r.direction = 'out' and (r.payment_method = of_method or r.asset = of_asset)
      and (r.partner = ordered.slug or r.partner is null and not ordered.is_of_test))
  from (
    select slug, mode = 'test' or coalesce(ordered_at < live_since, false) as is_of_test
    from client where client_id = of_client
  ) ordered
$$;
