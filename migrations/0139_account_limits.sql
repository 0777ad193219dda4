-- An account pays for no more in a day than the limit that an operator has set for it, in the currency of limits: what the
-- user's orders that name it take together, since then. No row for an account that may not trade at all, as
-- `account_may_trade` says, which edges of before ask.
create function account_limits(
  of_client uuid, of_user uuid, of_account uuid, amount numeric, since timestamptz
) returns table (fits boolean) language sql stable as $$
  select a.amount_limit is null or a.amount_limit >= amount + (
    select coalesce(sum(limit_amount), 0) from user_trade
    where client_id = of_client and user_id = of_user and account_id = of_account and side = 'buy'
      and created_at > since)
  from payment_account a
  where a.client_id = of_client and a.user_id = of_user and a.account_id = of_account
    and a.verified_at is not null and a.disabled_at is null
$$;
