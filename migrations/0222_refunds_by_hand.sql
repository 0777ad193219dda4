-- A refund that its connector has made and not told of yet is still set aside, and no other one of its book waits for that.
-- Refunds by hand of payments that are their order's are made from the same book as those of payments in suspense.

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
      and not exists (select from command c
        where c.client_id = p.client_id and c.idempotency_key = 'refund/' || r.refund_id::text)
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
    select b.client_id, b.order_id, b.currency, b.amount - k.commanded as owed
    from set_aside b
    cross join lateral (
      -- what connectors have told of
      select coalesce(sum(p.amount), 0) as amount
      from (
        select p.amount from payment p
        where p.client_id = b.client_id and p.order_id = b.order_id and p.kind = 'refunded'
          and p.connector <> 'manual' and p.currency = b.currency
        union all
        select p.amount from ledger_entry e
        join payment p on p.client_id = e.client_id and p.payment_id = e.payment_id
        where b.order_id is null and e.client_id = b.client_id and e.order_id is null and e.kind = 'refunded'
          and p.connector <> 'manual' and p.currency = b.currency
          -- one that nobody commanded is of a payment that no command has given back
          and not exists (
            select from payment o
            where o.connector = p.connector and o.kind = 'received'
              and o.provider_reference = coalesce(p.original_reference, p.provider_reference)
              and not exists (select from payment_refund r
                join command c on c.client_id = e.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
                where r.client_id = o.client_id and r.payment_id = o.payment_id and c.state = 'done'))
      ) p
    ) told
    cross join lateral (
      select coalesce(sum(made.amount) filter (where made.state = 'open'), 0)
        + greatest(coalesce(sum(made.amount) filter (where made.state = 'done'), 0) - told.amount, 0) as commanded
      from (
        select r.amount, c.state
        from command c
        join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
        join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
        where c.client_id = b.client_id and c.order_id = b.order_id and c.kind = 'payment.refund'
          and p.currency = b.currency
        union all
        -- those of payments without an order, which are in suspense: no index has their commands
        select r.amount, c.state
        from payment p
        join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
        join command c on c.client_id = b.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
        where b.order_id is null and p.client_id = b.client_id and p.suspense and p.currency = b.currency
          and c.order_id is null
      ) made
    ) k
    where b.amount > k.commanded
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
      where not exists (select from command c
        where c.client_id = b.client_id and c.idempotency_key = 'refund/' || r.refund_id::text)
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
