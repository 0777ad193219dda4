-- Refunds of payments in suspense that no connector is told to make: they wait for an operator until somebody has made them.

-- What is still to be given back by hand, by payment. A refund by hand names no payment: of an order, or of what has none, the
-- oldest are made first. What was set aside there and no command makes is what is left to be made.
create function refunds_by_hand()
returns table (client_id uuid, payment_id uuid, amount numeric)
language sql stable as $$
  with asked as (
    select f.client_id, f.payment_id, f.order_id, f.currency, sum(f.amount) as amount, max(f.requested_at) as requested_at
    from (
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
    ) f
    group by f.client_id, f.payment_id, f.order_id, f.currency
  ), ranked as (
    select a.client_id, a.payment_id, a.order_id, a.currency, a.amount,
      coalesce(sum(a.amount) over (
        partition by a.client_id, a.order_id, a.currency order by a.requested_at desc, a.payment_id desc
        rows between unbounded preceding and 1 preceding), 0) as newer
    from asked a
  ), books as (
    select b.client_id, b.order_id, b.currency, s.set_aside - k.commanded as owed
    from (select distinct a.client_id, a.order_id, a.currency from asked a) b
    cross join lateral (
      select coalesce(-sum(l.amount), 0) as set_aside
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
    cross join lateral (
      select coalesce(sum(r.amount), 0) as commanded
      from command c
      join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
      join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
      where c.client_id = b.client_id and c.kind = 'payment.refund' and c.state = 'open'
        and p.currency = b.currency
        and (c.order_id = b.order_id or c.order_id is null and b.order_id is null)
    ) k
  )
  select r.client_id, r.payment_id, least(r.amount, b.owed - r.newer)
  from ranked r
  join books b on b.client_id = r.client_id and b.currency = r.currency
    and b.order_id is not distinct from r.order_id
  where b.owed > r.newer
$$;
