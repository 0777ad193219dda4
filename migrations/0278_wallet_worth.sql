-- An unhosted wallet needs a proof above 1000 EUR: an order in another currency counts by its worth in that of limits, at
-- the rate of its confirm.

create or replace function payout_gate(of_client uuid, number bigint, gate_of_live text)
returns table (is_held boolean, holds text[]) language sql stable as $$
  select gated.gate <> 'none' and cardinality(gated.holds) > 0, gated.holds
  from (
    select
      coalesce(k.compliance_gates ->> m.kind, k.compliance_gate,
        case when k.mode = 'live' then gate_of_live else 'none' end) as gate,
      case when o.user_id is null then '{}' else u.holds end
        || array_remove(array[
          case when o.account_id is not null and a.account_id is null then 'account' end,
          case when o.wallet_type = 'unhosted' and o.wallet_proven_at is null
            -- the number counts where the confirm had no rate
            and case when o.fiat_currency = 'EUR' then o.fiat_amount
              else coalesce(o.limit_amount, o.fiat_amount) end > 1000
            then 'wallet' end,
          case s.state when 'pending' then 'screening'
            when 'review' then 'screening-review' when 'block' then 'screening-review' end], null)
        as holds
    from buy_order o
    join client k on k.client_id = o.client_id
    left join payment_method m on m.code = o.payment_method
    -- as account_may_trade has it
    left join payment_account a on a.client_id = o.client_id and a.user_id = o.user_id
      and a.account_id = o.account_id and a.verified_at is not null and a.disabled_at is null
    left join screening s on s.client_id = o.client_id and s.order_id = o.order_id
    cross join lateral user_checks(o.client_id, o.user_id) u
    where o.client_id = of_client and o.order_id = number
  ) gated
$$;
