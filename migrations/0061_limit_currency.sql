-- Limits count every order in one currency, at the rate of its confirm.

alter table buy_order
  -- the fiat amount in the currency of limits; null: made by an edge that knew one currency, or for nobody
  add column limit_amount numeric;

alter table sell_order
  add column limit_amount numeric;

create or replace view user_trade with (security_invoker = true) as
  select client_id, user_id, 'buy' as side, payment_method, account_id, fiat_amount, created_at,
    coalesce(limit_amount, fiat_amount) as limit_amount
    from buy_order where user_id is not null and status not in ('cancelled', 'refunded')
  union all
  select client_id, user_id, 'sell' as side, payment_method, account_id, fiat_amount, created_at,
    coalesce(limit_amount, fiat_amount) as limit_amount
    from sell_order where user_id is not null and status not in ('cancelled', 'refunded');

-- The amount and the bounds are in the currency of limits.
create or replace function trade_fits_day(
  of_client uuid, of_user uuid, trade_side text, amount numeric,
  side_max numeric, day_max numeric, since timestamptz
) returns boolean language sql stable as $$
  select coalesce(sum(limit_amount) filter (where side = trade_side), 0) + amount <= side_max
    and coalesce(sum(limit_amount), 0) + amount <= day_max
  from user_trade where client_id = of_client and user_id = of_user and created_at > since
$$;
