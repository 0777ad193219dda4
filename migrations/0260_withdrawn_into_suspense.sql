-- The part of a payment that is in suspense because its refund was withdrawn after its order had been executed, without what was
-- asked for of it since, by the entries of its book: what was asked for and came from the order's customer counted as well, so
-- that the rest could not be given back; and what was withdrawn before the payment was matched to its order.
create or replace function withdrawn_into_suspense(of_client uuid, of_payment uuid) returns table (amount numeric)
language sql stable as $$
  select coalesce(-sum(line.amount) filter (
    where line.kind = 'refund-withdrawn' or not line.is_unexpected or line.recorded_at > line.since), 0)
  from (
    select e.kind, e.recorded_at, e.is_unexpected, l.amount,
      min(e.recorded_at) filter (where e.kind = 'refund-withdrawn') over () as since
    from (
      select e.client_id, e.entry_id, e.kind, e.recorded_at, p.currency,
        -- only of such a payment suspense was asked before its first withdrawal: time is that of a transaction's start, not the
        -- order of locks
        p.suspense and m.payment_id is null as is_unexpected
      from payment p
      left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
      join ledger_entry e on e.client_id = coalesce(m.to_client_id, p.client_id) and e.payment_id = p.payment_id
        and (m.order_id is null or e.order_id = m.order_id)
      where p.client_id = of_client and p.payment_id = of_payment and e.kind in ('refund-withdrawn', 'refund-requested')
      -- no plan begins with the lines of the account, which are everybody's
      offset 0
    ) e
    join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
    join ledger_account t on t.client_id = l.client_id and t.account_id = l.account_id
    where t.kind = 'suspense' and t.currency = e.currency
  ) line
$$;
