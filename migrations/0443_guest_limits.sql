-- An order without a user is one that its partner's agreement allows now, as the limits of users and accounts are: the
-- statement that makes it asks. The amount is in the currency of limits; without one no bound is kept.
create function guest_limits(of_client uuid, amount numeric) returns table (fits boolean) language sql stable as $$
  select coalesce(c.guest_orders_allowed, c.mode = 'test')
    and (c.guest_orders_max is null or coalesce(amount <= c.guest_orders_max, false))
  from client c where c.client_id = of_client
$$;
