-- Payments that no order has and that wait for an operator, by the rule of the review queue and the metrics
-- (`money_waiting()`): the list of those that are unmatched leaves out what was given back.

-- Where a book of no order owes what a connector has given back a week ago and told nothing of, the payments are those whose
-- refund it is; which of them have an order is for the statement that asks. The index of payments in suspense finds them.
create function payments_unmatched() returns table (payment_id uuid) language sql stable as $$
  with waiting as materialized (
    select w.client_id, w.payment_id from money_waiting() w where w.order_id is null
  )
  select w.payment_id from waiting w where w.payment_id is not null
  union
  select p.payment_id
  from payment p
  cross join lateral refund_requested(p.client_id, p.payment_id) asked
  where p.suspense
    and p.client_id in (select w.client_id from waiting w where w.payment_id is null)
    and exists (
      select from payment_refund r
      join command c on c.client_id = r.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
      where r.client_id = p.client_id and r.payment_id = p.payment_id
        and c.state = 'done' and c.finished_at <= rampart_now() - interval '7 days')
    and asked.amount > (
      select coalesce(sum(t.amount), 0) from payment t
      where t.connector = p.connector and t.currency = p.currency and t.kind = 'refunded'
        and coalesce(t.original_reference, t.provider_reference) = p.provider_reference)
$$;
