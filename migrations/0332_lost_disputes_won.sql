-- A dispute that was lost, and whose money comes back after all: it counted as lost and as won, so that what nobody wanted of it
-- was no money of anybody.

-- What is told of a dispute as lost and as won; no row while one of the two is not told. Ends may be told in any order, and
-- each of a part: what both tell of beyond the dispute has come back.
create function lost_and_won(of_connector text, dispute text) returns table (amount numeric)
language sql stable as $$
  select greatest(l.amount + w.amount - greatest(d.amount, l.amount, w.amount), 0)
  from payment l
  join payment w on w.connector = l.connector and w.kind = 'dispute-won' and w.provider_reference = l.provider_reference
    and w.currency = l.currency
  left join payment d on d.connector = l.connector and d.kind = 'disputed' and d.provider_reference = l.provider_reference
    and d.currency = l.currency
  where l.connector = of_connector and l.kind = 'dispute-lost' and l.provider_reference = dispute
$$;

-- What disputes that are named, or those of an order, have taken of payments, in rows that are planned with the statement
-- around them. A name is that of the dispute itself, or of the payment that it is of. What was won came back; what was
-- lost stays taken, but is open no more, and is lost as far as it was not won after all.
create or replace function disputes_of(of_connector text, named text, of_client uuid, number bigint)
returns table (is_itself boolean, is_of_payment boolean, is_of_order boolean, currency text, taken numeric, still_open numeric)
language sql stable as $$
  select found.is_itself, found.is_of_payment, found.is_of_order, found.currency,
    sum(case found.kind when 'disputed' then found.amount when 'dispute-won' then -found.amount else 0 end),
    sum(case found.kind when 'disputed' then found.amount else found.came_back - found.amount end)
  from (
    select p.kind, p.amount, p.currency,
      case when p.kind = 'dispute-lost'
        then coalesce((select b.amount from lost_and_won(p.connector, p.provider_reference) b), 0)
        else 0 end as came_back,
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
