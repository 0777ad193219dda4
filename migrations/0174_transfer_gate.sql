-- What the money of a sale waits for, as coins wait by `payout_gate`.

-- The checks that a sale's transfer waits for, in the order in which they are shown, and whether they hold it back: those
-- of its user by the gate of the payout method's kind, of the partner, or of all that are live; a recipient who is gone or
-- disabled, and an account that is, or is not verified any more, always.
create function transfer_gate(of_client uuid, number bigint, gate_of_live text)
returns table (is_held boolean, holds text[]) language sql stable as $$
  select gated.holds && array['user', 'account']
    or (gated.gate <> 'none' and cardinality(gated.holds) > 0), gated.holds
  from (
    select
      coalesce(k.compliance_gates ->> m.kind, k.compliance_gate,
        case when k.mode = 'live' then gate_of_live else 'none' end) as gate,
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

-- Whether a command that sends coins or money of an order is held back.
create function outgoing_gate(of_client uuid, number bigint, of_kind text, gate_of_live text)
returns table (is_held boolean) language sql stable as $$
  select g.is_held from payout_gate(of_client, number, gate_of_live) g where of_kind = 'payout.send'
  union all
  select g.is_held from transfer_gate(of_client, number, gate_of_live) g where of_kind = 'transfer.send'
$$;
