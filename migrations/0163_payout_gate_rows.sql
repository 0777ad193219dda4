-- What coins wait for, as rows: Postgres makes them a part of the plan of a statement over many orders. Functions that
-- return a value from a subquery are planned anew for each order.

-- The checks of a person that are open, in the order in which they are shown.
create function user_checks(of_client uuid, person uuid) returns table (holds text[]) language sql stable as $$
  select array_remove(array[
    case when u.privacy_agreement_status is distinct from 'verified' then 'registration' end,
    case when u.user_id is null or u.deleted_at is not null or u.disabled_at is not null
      then 'user' end,
    case when u.identity_status is distinct from 'verified' then 'identity' end,
    case when u.amld5_status is distinct from 'verified' then 'amld5' end,
    case when u.dac8_status = 'missing' then 'tax' end,
    case when coalesce(u.residential_address_status, '') not in ('present', 'verified')
      then 'address' end,
    case s.state when 'pending' then 'screening'
      when 'review' then 'screening-review' when 'block' then 'screening-review' end], null)
  from (select 1) one
  left join end_user u on u.client_id = of_client and u.user_id = person
  left join screening s on s.client_id = of_client and s.user_id = person
$$;

-- The checks that an order's payout waits for, in the order in which they are shown, and whether they hold it back: by
-- the gate of the payment method's kind, of the partner, or of all that are live.
create function payout_gate(of_client uuid, number bigint, gate_of_live text)
returns table (is_held boolean, holds text[]) language sql stable as $$
  select gated.gate <> 'none' and cardinality(gated.holds) > 0, gated.holds
  from (
    select
      coalesce(k.compliance_gates ->> m.kind, k.compliance_gate,
        case when k.mode = 'live' then gate_of_live else 'none' end) as gate,
      case when o.user_id is null then '{}' else u.holds end
        || array_remove(array[
          case when o.account_id is not null and a.account_id is null then 'account' end,
          case when o.wallet_type = 'unhosted' and o.fiat_amount > 1000 and o.wallet_proven_at is null
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

-- One rule, also for edges of the version before.
create or replace function user_holds(client uuid, person uuid) returns text[] language sql stable
  return (select holds from user_checks(client, person));
create or replace function payout_holds(client uuid, number bigint) returns text[] language sql stable
  return (select holds from payout_gate(client, number, 'none'));
create or replace function payout_is_held(client uuid, number bigint, gate_of_live text) returns boolean
  language sql stable
  return (select is_held from payout_gate(client, number, gate_of_live));
