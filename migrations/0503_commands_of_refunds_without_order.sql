-- optional: edges serve without it
-- Money without an order that is given back reads the commands of such refunds (0504), instead of all payments in suspense that its
-- partner has ever had.

-- What connectors are commanded to give back of an order, or of what has none: by commands that have not ended, by those of
-- them that their connector cannot carry out, and by those that are done as far as no connector has told of it yet; of
-- these what has ended within seven days. What is told by a payment's name is of that payment's commands alone, without what
-- persons have given back of it at its provider.
create or replace function refunds_by_command(of_client uuid, of_order bigint, of_currency text)
returns table (open numeric, unserved numeric, untold numeric, recent numeric)
language sql stable as $$
  with commanded as (
    select r.client_id, r.payment_id, r.amount, c.state, c.finished_at,
      c.attempt = c.retries and exists (select from connector_without(c.kind, c.connector)) as is_unserved
    from command c
    join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
    join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
    where c.client_id = of_client and c.order_id = of_order and c.kind = 'payment.refund' and p.currency = of_currency
    union all
    -- those of payments without an order, which are in suspense
    select r.client_id, r.payment_id, r.amount, c.state, c.finished_at,
      c.attempt = c.retries and exists (select from connector_without(c.kind, c.connector))
    from command c
    join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
    join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
    where of_order is null and c.client_id = of_client and c.order_id is null and c.kind = 'payment.refund'
      and p.client_id = c.client_id and p.suspense and p.currency = of_currency
  )
  select made.open, made.unserved, greatest(made.done - named.amount - unnamed.amount, 0),
    least(made.recent, greatest(made.done - named.amount - unnamed.amount, 0))
  from (
    select coalesce(sum(m.amount) filter (where m.state = 'open' and not m.is_unserved), 0) as open,
      coalesce(sum(m.amount) filter (where m.state = 'open' and m.is_unserved), 0) as unserved,
      coalesce(sum(m.amount) filter (where m.state = 'done'), 0) as done,
      coalesce(sum(m.amount) filter (
        where m.state = 'done' and m.finished_at > rampart_now() - interval '7 days'), 0) as recent
    from commanded m
  ) made
  cross join (
    select coalesce(sum(least(d.amount, greatest(told.amount - by_persons.amount, 0))), 0) as amount
    from (
      select m.client_id, m.payment_id, sum(m.amount) as amount
      from commanded m
      where m.state = 'done'
      group by m.client_id, m.payment_id
    ) d
    cross join lateral refunds_told(d.client_id, d.payment_id) told
    cross join lateral (
      select coalesce(sum(w.told), 0) as amount
      from payment_refund r
      join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
      where r.client_id = d.client_id and r.payment_id = d.payment_id
    ) by_persons
  ) named
  cross join (
    select coalesce(sum(t.amount), 0) as amount
    from (
      select p.connector, p.amount, coalesce(p.original_reference, p.provider_reference) as reference
      from payment p
      where p.client_id = of_client and p.order_id = of_order and p.kind = 'refunded'
        and p.connector <> 'manual' and p.currency = of_currency
        -- what an operator's event has booked, with its own id for a reference, no connector has told of
        and p.provider_reference <> p.payment_id::text
      union all
      select p.connector, p.amount, coalesce(p.original_reference, p.provider_reference)
      from ledger_entry e
      join payment p on p.client_id = e.client_id and p.payment_id = e.payment_id
      where of_order is null and e.client_id = of_client and e.order_id is null and e.kind = 'refunded'
        and p.connector <> 'manual' and p.currency = of_currency
        and not exists (select from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id)
    ) t
    where not exists (
      select from payment o
      where o.connector = t.connector and o.kind = 'received' and o.provider_reference = t.reference)
  ) unnamed
$$;
