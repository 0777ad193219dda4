-- A live sale of a user that names no account waits for support, which pays it out by hand or gives its coins back: it was
-- commanded without a recipient, which its connector refused.

-- Whether a sale of a user names nobody to pay out to. Of a guest's the partner's agreement says who is paid, and the
-- sandbox, which is behind test clients, pays out to nobody.
create function is_sale_without_account(of_mode text, of_user uuid, of_account uuid)
returns boolean language sql immutable as $$
  select of_mode = 'live' and of_user is not null and of_account is null
$$;

-- As 0174 has it, and held without an account. That is none of the checks, which are shown by name: edges of the version
-- before know no other ones.
create or replace function transfer_gate(of_client uuid, number bigint, gate_of_live text)
returns table (is_held boolean, holds text[]) language sql stable as $$
  select gated.names_nobody or gated.holds && array['user', 'account']
    or (gated.gate <> 'none' and cardinality(gated.holds) > 0), gated.holds
  from (
    select
      coalesce(k.compliance_gates ->> m.kind, k.compliance_gate,
        case when k.mode = 'live' then gate_of_live else 'none' end) as gate,
      is_sale_without_account(k.mode, o.user_id, o.account_id) as names_nobody,
      case when o.user_id is null then '{}'
        -- nobody asks the user of a sale for these two
        else array_remove(array_remove(u.holds, 'registration'), 'address') end
        || array_remove(array[
          case when o.account_id is not null and a.account_id is null then 'account' end], null)
        as holds
    from sell_order o
    join client k on k.client_id = o.client_id
    left join payment_method m on m.code = o.payment_method
    -- as account_may_trade has it
    left join payment_account a on a.client_id = o.client_id and a.user_id = o.user_id
      and a.account_id = o.account_id and a.verified_at is not null and a.disabled_at is null
    cross join lateral user_checks(o.client_id, o.user_id) u
    where o.client_id = of_client and o.order_id = number
  ) gated
$$;
