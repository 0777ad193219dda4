-- The checks that the coins of a paid order wait for, as its page shows them; null where they wait for none.
create function open_payout_holds(client uuid, number bigint, gate_of_live text) returns text[]
  language sql stable
  return (
    select payout_holds(client, number)
    from buy_order o
    where o.client_id = client and o.order_id = number and o.status = 'in progress'
      and o.transaction_id is null and payout_is_held(client, number, gate_of_live));
