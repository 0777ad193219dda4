-- A refund that an operator had recorded under its provider's name for it, and that its connector told of as well, was booked
-- twice.

-- The refunds that are told of by this name, by a connector or by an operator, in the book of this order, or in that of what has
-- no order. Under the name of a payment that came in several refunds may be told of: those are left out.
create function refunds_named(of_client uuid, of_order bigint, of_name text, of_currency text)
returns table (client_id uuid, payment_id uuid, connector text, amount numeric)
language sql stable as $$
  select p.client_id, p.payment_id, p.connector, p.amount
  from (select 'manual' as name union select k.name from connector k) teller
  join payment p on p.connector = teller.name and p.kind = 'refunded' and p.provider_reference = of_name
  left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
  where p.currency = of_currency and coalesce(m.to_client_id, p.client_id) = of_client
    and coalesce(m.order_id, p.order_id) is not distinct from of_order
    and not exists (
      select from payment o
      where o.connector = p.connector and o.kind in ('received', 'deposit-received') and o.provider_reference = of_name)
    -- the rest of what confirmed a refund by an order's event is told with that
    and not exists (
      select from refund_confirmation c where c.connector = p.connector and c.provider_reference = of_name)
  union all
  select c.client_id, c.payment_id, c.connector, c.amount + c.rest
  from connector k
  join refund_confirmation c on c.connector = k.name and c.provider_reference = of_name
  join payment p on p.client_id = c.client_id and p.payment_id = c.payment_id
  where p.currency = of_currency and p.client_id = of_client and p.order_id is not distinct from of_order
$$;
