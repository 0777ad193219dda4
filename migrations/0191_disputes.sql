-- What was disputed of a payment, and is: one rule for what may be given back, what a match may take, which order waits
-- and what a dispute that ends has left.

-- What disputes that are named, or those of an order, have taken of payments, in rows that are planned with the statement
-- around them. A name is that of the dispute itself, or of the payment that it is of. What was won came back; what was
-- lost stays taken, but is open no more.
create function disputes_of(of_connector text, named text, of_client uuid, number bigint)
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
      coalesce(p.client_id = of_client and p.order_id = number, false) as is_of_order
    from payment p
    where p.kind in ('disputed', 'dispute-won', 'dispute-lost')
      and (p.connector = of_connector and p.provider_reference = named
        or p.connector = of_connector and coalesce(p.original_reference, p.provider_reference) = named
        or p.client_id = of_client and p.order_id = number)
  ) found
  group by found.is_itself, found.is_of_payment, found.is_of_order, found.currency
$$;
