-- The limit of an account holds for what its user buys from it and sells to it together, as the limit of the user's day does:
-- a sale was held to none. No row for an account that may not trade at all.
create or replace function account_limits(
  of_client uuid, of_user uuid, of_account uuid, amount numeric, since timestamptz
) returns table (fits boolean) language sql stable as $$
  select a.amount_limit is null or a.amount_limit >= amount + (
    select coalesce(sum(limit_amount), 0) from user_trade
    where client_id = of_client and user_id = of_user and account_id = of_account
      and created_at > since)
  from payment_account a
  where a.client_id = of_client and a.user_id = of_user and a.account_id = of_account
    and a.verified_at is not null and a.disabled_at is null
$$;
