-- Refunds and disputes that a provider tells of before their payment, and without an order: they stayed in the book of what has
-- no order, though the payment had found its own. A row of `payment_match` names their order from then on, as it names that of
-- a payment that an operator has matched.

-- References under which connectors tell of payments that came in, and of what is given back or taken of one. Whoever decides on
-- a report of it locks the row: of a payment and its refund at once, the second one sees the first.
create table reported_payment (
  connector text not null,
  provider_reference text not null,
  primary key (connector, provider_reference)
);

-- What was given back or taken of a payment, in the books of what has no order. An order that does not exist is none.
create function told_without_order(of_connector text, named text)
returns table (client_id uuid, payment_id uuid, kind text, amount numeric, currency text, recorded_at timestamptz)
language sql stable as $$
  select p.client_id, p.payment_id, p.kind, p.amount, p.currency, p.recorded_at
  from payment p
  where p.connector = of_connector and p.kind in ('refunded', 'disputed', 'dispute-won', 'dispute-lost')
    -- an array, by which the index is asked: a join may read all that was ever given back
    and coalesce(p.original_reference, p.provider_reference) = any (array(
      select named
      union all
      -- the end of a dispute may name the dispute alone
      select d.provider_reference from payment d
      where d.connector = of_connector and d.kind = 'disputed'
        and coalesce(d.original_reference, d.provider_reference) = named))
    -- row by row: no plan reads the matches or the orders from end to end
    and coalesce(
      (select m.order_id from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id),
      (select o.order_id from buy_order o where o.client_id = p.client_id and o.order_id = p.order_id),
      (select o.order_id from sell_order o where o.client_id = p.client_id and o.order_id = p.order_id)) is null
$$;

-- What disputes that are named, or those of an order, have taken of payments, in rows that are planned with the statement
-- around them. A name is that of the dispute itself, or of the payment that it is of. What was won came back; what was
-- lost stays taken, but is open no more.
create or replace function disputes_of(of_connector text, named text, of_client uuid, number bigint)
returns table (is_itself boolean, is_of_payment boolean, is_of_order boolean, currency text, taken numeric, still_open numeric)
language sql stable as $$
  select found.is_itself, found.is_of_payment, found.is_of_order, found.currency,
    sum(case found.kind when 'disputed' then found.amount when 'dispute-won' then -found.amount else 0 end),
    sum(case found.kind when 'disputed' then found.amount else -found.amount end)
  from (
    select p.kind, p.amount, p.currency,
      coalesce(p.connector = of_connector and p.provider_reference = named, false) as is_itself,
      coalesce(p.connector = of_connector
        and coalesce(p.original_reference, p.provider_reference) = named, false) as is_of_payment,
      coalesce(p.client_id = of_client and p.order_id = number, false)
        or exists (select from payment_match m
          where m.client_id = p.client_id and m.payment_id = p.payment_id
            and m.to_client_id = of_client and m.order_id = number) as is_of_order
    from (
      select d.client_id, d.payment_id from payment d
      where d.kind in ('disputed', 'dispute-won', 'dispute-lost')
        and (d.connector = of_connector and d.provider_reference = named
          or d.connector = of_connector and coalesce(d.original_reference, d.provider_reference) = named
          or d.client_id = of_client and d.order_id = number)
      union
      select m.client_id, m.payment_id from payment_match m
      where m.to_client_id = of_client and m.order_id = number
    ) told
    join payment p on p.client_id = told.client_id and p.payment_id = told.payment_id
    where p.kind in ('disputed', 'dispute-won', 'dispute-lost')
  ) found
  group by found.is_itself, found.is_of_payment, found.is_of_order, found.currency
$$;

-- What connectors give back of an order, or of what has none, and may have given back. A refund that was told before its
-- payment followed from no command: it is in the book of what has no order no more, and counts for none of its order's.
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
        and not exists (select from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id)
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
