-- A refund that no connector has begun, and whose own lacks the capability for it, is to be given back by hand: its command
-- counted as under way for good, so that nobody saw it. While the connector has the capability it is the connector's again.

-- The command of a refund; none while its connector cannot make it and has not begun to.
create function refund_command(of_client uuid, of_refund uuid) returns table (command_id uuid, state text)
language sql stable as $$
  select c.command_id, c.state from command c
  where c.client_id = of_client and c.idempotency_key = 'refund/' || of_refund::text
    and not (c.state = 'open' and c.attempt = c.retries and exists (
      select from connector k where k.name = c.connector and not c.kind = any (k.capabilities)))
$$;

-- What connectors are commanded to give back of an order, or of what has none: by commands that have not ended, by those of
-- them that their connector cannot carry out, and by those that are done as far as no connector has told of it yet; of
-- these what has ended within seven days.
create function refunds_by_command(of_client uuid, of_order bigint, of_currency text)
returns table (open numeric, unserved numeric, untold numeric, recent numeric)
language sql stable as $$
  select made.open, made.unserved, greatest(made.done - told.amount, 0),
    least(made.recent, greatest(made.done - told.amount, 0))
  from (
    select coalesce(sum(m.amount) filter (where m.state = 'open' and not m.is_unserved), 0) as open,
      coalesce(sum(m.amount) filter (where m.state = 'open' and m.is_unserved), 0) as unserved,
      coalesce(sum(m.amount) filter (where m.state = 'done'), 0) as done,
      coalesce(sum(m.amount) filter (
        where m.state = 'done' and m.finished_at > rampart_now() - interval '7 days'), 0) as recent
    from (
      select r.amount, c.state, c.finished_at,
        c.attempt = c.retries and exists (
          select from connector k
          where k.name = c.connector and not c.kind = any (k.capabilities)) as is_unserved
      from command c
      join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
      join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
      where c.client_id = of_client and c.order_id = of_order and c.kind = 'payment.refund' and p.currency = of_currency
      union all
      -- those of payments without an order, which are in suspense: no index has their commands
      select r.amount, c.state, c.finished_at,
        c.attempt = c.retries and exists (
          select from connector k
          where k.name = c.connector and not c.kind = any (k.capabilities))
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

-- What connectors give back of an order, or of what has none, and may have given back.
create or replace function refunds_under_way(of_client uuid, of_order bigint, of_currency text)
returns table (open numeric, untold numeric, recent numeric)
language sql stable as $$
  select c.open, c.untold, c.recent from refunds_by_command(of_client, of_order, of_currency) c
$$;

-- What is still to be given back by hand, by payment. A refund by hand names no payment: of an order, or of what has none, the
-- oldest are made first. What was set aside there and no command makes is what is left to be made.
create or replace function refunds_by_hand()
returns table (client_id uuid, payment_id uuid, amount numeric)
language sql stable as $$
  with unexpected as (
    select p.client_id, p.payment_id, p.currency, r.amount, r.requested_at,
      -- an order that does not exist is none
      coalesce(
        (select o.order_id from buy_order o where o.client_id = p.client_id and o.order_id = p.order_id),
        (select o.order_id from sell_order o where o.client_id = p.client_id and o.order_id = p.order_id)) as order_id
    from payment p
    join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
    where p.suspense
      and not exists (select from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id)
      and not exists (select from refund_command(p.client_id, r.refund_id))
  ), set_aside as materialized (
    -- most were given back long ago: nothing else is read of their books
    select b.client_id, b.order_id, b.currency, s.amount
    from (select distinct u.client_id, u.order_id, u.currency from unexpected u) b
    cross join lateral (
      select coalesce(-sum(l.amount), 0) as amount
      from (
        select e.entry_id from ledger_entry e where e.client_id = b.client_id and e.order_id = b.order_id
        union all
        select e.entry_id from ledger_entry e
        where e.client_id = b.client_id and e.order_id is null and b.order_id is null
      ) entry
      join ledger_posting l on l.client_id = b.client_id and l.entry_id = entry.entry_id
      join ledger_account t on t.client_id = l.client_id and t.account_id = l.account_id
      where t.kind = 'refund_payable' and t.currency = b.currency
    ) s
    where s.amount > 0
  ), books as (
    select b.client_id, b.order_id, b.currency, b.amount - k.open - k.untold as owed
    from set_aside b
    cross join lateral refunds_under_way(b.client_id, b.order_id, b.currency) k
    where b.amount > k.open + k.untold
  ), asked as (
    select f.book, f.order_id, f.currency, f.client_id, f.payment_id,
      sum(f.amount) as amount, max(f.requested_at) as requested_at
    from (
      select u.client_id as book, u.order_id, u.currency, u.client_id, u.payment_id, u.amount, u.requested_at
      from unexpected u
      union all
      select b.client_id, b.order_id, b.currency, own.client_id, own.payment_id, r.amount, r.requested_at
      from books b
      cross join lateral (
        select p.client_id, p.payment_id from payment p
        where p.client_id = b.client_id and p.order_id = b.order_id and p.currency = b.currency and not p.suspense
        union all
        select p.client_id, p.payment_id from payment_match m
        join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
        where m.to_client_id = b.client_id and m.order_id = b.order_id and p.currency = b.currency
      ) own
      join payment_refund r on r.client_id = own.client_id and r.payment_id = own.payment_id
      where not exists (select from refund_command(b.client_id, r.refund_id))
    ) f
    group by f.book, f.order_id, f.currency, f.client_id, f.payment_id
  ), ranked as (
    select a.book, a.order_id, a.currency, a.client_id, a.payment_id, a.amount,
      coalesce(sum(a.amount) over (
        partition by a.book, a.order_id, a.currency order by a.requested_at desc, a.payment_id desc
        rows between unbounded preceding and 1 preceding), 0) as newer
    from asked a
  )
  select r.client_id, r.payment_id, least(r.amount, b.owed - r.newer)
  from ranked r
  join books b on b.client_id = r.book and b.currency = r.currency
    and b.order_id is not distinct from r.order_id
  where b.owed > r.newer
$$;
