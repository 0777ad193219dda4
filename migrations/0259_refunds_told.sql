-- What connectors give back of an order, or of what has none, and may have given back: a refund that an operator's event has
-- booked at a provider counted as told of by its connector, so that a later one by command was owed at once.
create or replace function refunds_under_way(of_client uuid, of_order bigint, of_currency text)
returns table (open numeric, untold numeric, recent numeric)
language sql stable as $$
  select made.open, greatest(made.done - told.amount, 0), least(made.recent, greatest(made.done - told.amount, 0))
  from (
    select coalesce(sum(m.amount) filter (where m.state = 'open'), 0) as open,
      coalesce(sum(m.amount) filter (where m.state = 'done'), 0) as done,
      coalesce(sum(m.amount) filter (
        where m.state = 'done' and m.finished_at > rampart_now() - interval '7 days'), 0) as recent
    from (
      select r.amount, c.state, c.finished_at
      from command c
      join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
      join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
      where c.client_id = of_client and c.order_id = of_order and c.kind = 'payment.refund' and p.currency = of_currency
      union all
      -- those of payments without an order, which are in suspense: no index has their commands
      select r.amount, c.state, c.finished_at
      from payment p
      join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
      join command c on c.client_id = p.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
      where of_order is null and p.client_id = of_client and p.suspense and p.currency = of_currency
        and c.order_id is null
    ) m
  ) made
  cross join (
    select coalesce(sum(t.amount), 0) as amount
    from (
      select p.amount from payment p
      where p.client_id = of_client and p.order_id = of_order and p.kind = 'refunded'
        and p.connector <> 'manual' and p.currency = of_currency
        -- what an operator's event has booked, with its own id for a reference, no connector has told of
        and p.provider_reference <> p.payment_id::text
      union all
      select p.amount
      from ledger_entry e
      join payment p on p.client_id = e.client_id and p.payment_id = e.payment_id
      where of_order is null and e.client_id = of_client and e.order_id is null and e.kind = 'refunded'
        and p.connector <> 'manual' and p.currency = of_currency
        -- one that nobody commanded is of a payment that no command has given back
        and not exists (
          select from payment o
          where o.connector = p.connector and o.kind = 'received'
            and o.provider_reference = coalesce(p.original_reference, p.provider_reference)
            and not exists (select from payment_refund r
              join command c on c.client_id = e.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
              where r.client_id = o.client_id and r.payment_id = o.payment_id and c.state = 'done'))
    ) t
  ) told
$$;
