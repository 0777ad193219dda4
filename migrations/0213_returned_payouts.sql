-- What came back of orders that are over: nobody is owed it by itself, and an operator sends it again or gives it back. One
-- rule for the review queue, the overview and the metrics.

create function returned_payouts()
returns table (client_id uuid, order_id bigint, currency text, amount numeric, since timestamptz)
language sql stable as $$
  select r.client_id, r.order_id, r.currency, -s.held, r.since
  from (
    select p.client_id, p.order_id, p.currency, max(p.recorded_at) as since
    from payment p
    where p.kind in ('payout-failed', 'transfer-returned') and p.order_id is not null
    group by p.client_id, p.order_id, p.currency
  ) r
  cross join lateral (
    select sum(l.amount) as held
    from ledger_entry e
    join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
    join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
    where e.client_id = r.client_id and e.order_id = r.order_id
      and a.kind = 'suspense' and a.currency = r.currency
  ) s
  where s.held < 0
    -- by the number of each: no plan reads the orders from end to end
    and coalesce(
      (select o.status from buy_order o where o.client_id = r.client_id and o.order_id = r.order_id),
      (select o.status from sell_order o where o.client_id = r.client_id and o.order_id = r.order_id))
      in ('completed', 'cancelled', 'refunded')
$$;
