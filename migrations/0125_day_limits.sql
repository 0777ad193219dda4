-- The rule of `trade_fits_day` as a function that returns a row: Postgres makes it a part of the plan of the statement
-- that asks, while it plans a function that returns a value anew in every statement. Edges of before ask the old one.
create function day_limits(
  of_client uuid, of_user uuid, trade_side text, amount numeric,
  side_max numeric, day_max numeric, since timestamptz
) returns table (fits boolean) language sql stable as $$
  select coalesce(sum(limit_amount) filter (where side = trade_side), 0) + amount <= side_max
    and coalesce(sum(limit_amount), 0) + amount <= day_max
  from user_trade where client_id = of_client and user_id = of_user and created_at > since
$$;
