-- One rule for a connector that lacks the capability for a kind of command, instead of a copy in every statement.

-- The connector of this name, if it lacks the capability for this kind of command.
create function connector_without(capability text, of_name text) returns table (name text)
language sql stable as $$
  select k.name from connector k where k.name = of_name and not capability = any (k.capabilities)
$$;

-- The command of a refund; none while its connector cannot make it and has not begun to.
create or replace function refund_command(of_client uuid, of_refund uuid) returns table (command_id uuid, state text)
language sql stable as $$
  select c.command_id, c.state from command c
  where c.client_id = of_client and c.idempotency_key = 'refund/' || of_refund::text
    and not (c.state = 'open' and c.attempt = c.retries and exists (select from connector_without(c.kind, c.connector)))
$$;

-- What connectors are commanded to give back of an order, or of what has none: by commands that have not ended, by those of
-- them that their connector cannot carry out, and by those that are done as far as no connector has told of it yet; of
-- these what has ended within seven days.
create or replace function refunds_by_command(of_client uuid, of_order bigint, of_currency text)
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
        c.attempt = c.retries and exists (select from connector_without(c.kind, c.connector)) as is_unserved
      from command c
      join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
      join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
      where c.client_id = of_client and c.order_id = of_order and c.kind = 'payment.refund' and p.currency = of_currency
      union all
      -- those of payments without an order, which are in suspense: no index has their commands
      select r.amount, c.state, c.finished_at,
        c.attempt = c.retries and exists (select from connector_without(c.kind, c.connector))
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
