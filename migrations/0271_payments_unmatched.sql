-- Payments that no order has and that wait for an operator, by the rule of the review queue and the metrics
-- (`money_waiting()`): the list of those that are unmatched leaves out what was given back.

-- Where a book of no order owes what a connector has given back a week ago and told nothing of, the payments are those whose
-- refund it is: of what was told without a name the oldest are first. The index of payments in suspense finds them.
create function payments_unmatched() returns table (payment_id uuid) language sql stable as $$
  with waiting as materialized (
    select w.client_id, w.payment_id from money_waiting() w where w.order_id is null
  ), made as materialized (
    select p.client_id, p.payment_id, p.currency, done.amount - told.amount as amount, done.finished_at
    from payment p
    cross join lateral (
      select coalesce(sum(r.amount), 0) as amount, max(c.finished_at) as finished_at
      from payment_refund r
      join command c on c.client_id = r.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
      where r.client_id = p.client_id and r.payment_id = p.payment_id and c.order_id is null
        and c.state = 'done' and c.finished_at <= rampart_now() - interval '7 days'
    ) done
    cross join lateral (
      select coalesce(sum(t.amount), 0) as amount from payment t
      where t.connector = p.connector and t.currency = p.currency and t.kind = 'refunded'
        and coalesce(t.original_reference, t.provider_reference) = p.provider_reference
    ) told
    where p.suspense and done.amount > told.amount
      and p.client_id in (select w.client_id from waiting w where w.payment_id is null)
  ), book as materialized (
    select b.client_id, b.currency, set_aside.amount - u.open - u.recent as owed
    from (select distinct m.client_id, m.currency from made m) b
    cross join lateral (
      select coalesce(-sum(l.amount), 0) as amount
      from ledger_entry e
      join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
      join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
      where e.client_id = b.client_id and e.order_id is null
        and a.kind = 'refund_payable' and a.currency = b.currency
    ) set_aside
    cross join lateral refunds_under_way(b.client_id, null::bigint, b.currency) u
  ), ranked as (
    select m.client_id, m.payment_id, m.currency,
      coalesce(sum(m.amount) over (
        partition by m.client_id, m.currency order by m.finished_at desc, m.payment_id desc
        rows between unbounded preceding and 1 preceding), 0) as newer
    from made m
  )
  select w.payment_id from waiting w where w.payment_id is not null
  union
  select r.payment_id
  from ranked r
  join book b on b.client_id = r.client_id and b.currency = r.currency
  where r.newer < b.owed
$$;
