-- What a purchase and a sale decide alike, in the statement that makes them. Both ask with the
-- rights of whoever calls, so row-level security of the tables holds.

-- Whether one more trade of `amount` keeps the user within what a day allows: on its side, and on
-- both sides together. Trades count that were made after `since`.
create function trade_fits_day(
  of_client uuid, of_user uuid, trade_side text, amount numeric,
  side_max numeric, day_max numeric, since timestamptz
) returns boolean language sql stable as $$
  select coalesce(sum(fiat_amount) filter (where side = trade_side), 0) + amount <= side_max
    and coalesce(sum(fiat_amount), 0) + amount <= day_max
  from user_trade where client_id = of_client and user_id = of_user and created_at > since
$$;

-- Whether the user may pay from the account, or be paid to it.
create function account_may_trade(of_client uuid, of_user uuid, of_account uuid)
returns boolean language sql stable as $$
  select exists (
    select from payment_account
    where client_id = of_client and user_id = of_user and account_id = of_account
      and verified_at is not null and disabled_at is null)
$$;
