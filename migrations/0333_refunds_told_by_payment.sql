-- A refund that a person has made at the provider counted as that of a command of another payment of the order, or of another
-- part of the same one: a refund by hand was allowed while the connector had made its own and not told of it yet.

-- What its provider has told of as given back of a payment, as far as that was set aside for it then.
create function refunds_told(of_client uuid, of_payment uuid) returns table (amount numeric)
language sql stable as $$
  -- the most by which reports have exceeded what was set aside until then was not set aside for them
  select coalesce(sum(line.amount) filter (where line.is_told), 0)
    - greatest(max(line.balance) filter (where line.is_told), 0)
  from (
    select one.is_told, one.amount, sum(one.amount) over (order by one.place) as balance
    from (
      -- ids tell the order: they are made under the book's lock, and begin with their time. Of a refund that is withdrawn no
      -- report has taken more than its withdrawal notes
      select r.refund_id as place, -coalesce(w.told, r.amount) as amount, false as is_told
      from payment_refund r
      left join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
      where r.client_id = of_client and r.payment_id = of_payment
      union all
      select e.entry_id, t.amount, true
      from payment p
      left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
      join payment t on t.connector = p.connector and t.kind = 'refunded' and t.currency = p.currency
        and coalesce(t.original_reference, t.provider_reference) = p.provider_reference
      join ledger_entry e on e.client_id = coalesce(m.to_client_id, p.client_id) and e.payment_id = t.payment_id
      where p.client_id = of_client and p.payment_id = of_payment and e.kind = 'refunded'
    ) one
  ) line
$$;

-- What its provider has told of as given back of a payment, as far as that was set aside for it then, beyond what the payment's
-- refunds explain: those that are done, have begun, or are made by hand. What a withdrawal has noted as told is explained. An
-- attempt that is named has ended and sent nothing.
create or replace function refunds_told_unasked(of_client uuid, of_payment uuid, of_attempt uuid)
returns table (amount numeric)
language sql stable as $$
  select greatest(told.amount - asked.amount, 0)
  from payment p
  left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
  cross join lateral refunds_told(p.client_id, p.payment_id) told
  cross join lateral (
    select coalesce(sum(
      case
        when w.refund_id is not null then w.told
        when c.state = 'rejected' then 0
        when c.state = 'open' and (c.attempt = c.retries or c.command_id = of_attempt) then 0
        else r.amount
      end), 0) as amount
    from payment_refund r
    left join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
    left join command c on c.client_id = coalesce(m.to_client_id, p.client_id)
      and c.idempotency_key = 'refund/' || r.refund_id::text
    where r.client_id = p.client_id and r.payment_id = p.payment_id
  ) asked
  where p.client_id = of_client and p.payment_id = of_payment
$$;

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
    -- those of payments without an order, which are in suspense: no index has their commands
    select r.client_id, r.payment_id, r.amount, c.state, c.finished_at,
      c.attempt = c.retries and exists (select from connector_without(c.kind, c.connector))
    from payment p
    join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
    join command c on c.client_id = p.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
    where of_order is null and p.client_id = of_client and p.suspense and p.currency = of_currency
      and c.order_id is null
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
