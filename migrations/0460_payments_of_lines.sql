-- The check of the books finds the payments of a statement's line as the reconciliation does: it knew references alone, so that
-- the line of a transaction that paid several orders stayed a problem until the next statement.

-- The payments of a connector that have, or had, one of these references, and those of these earlier names of the line. A payout's
-- begin stands for its end. A transaction that paid several orders is named by one of them as it is, and by the others behind their
-- order's number.
create function payments_of_line(of_connector text, of_references text[], of_earlier text[])
returns table (payment_id uuid, reference text, kind text, amount numeric, currency text, occurred_at timestamptz,
  recorded_at timestamptz, is_named boolean, takes_back boolean, of_order text)
language sql stable as $$
  with named as (
    select p.client_id, p.payment_id from payment p
    where p.connector = of_connector and p.provider_reference = any (of_references || of_earlier)
      and p.kind in ('received', 'deposit-received', 'refunded', 'transfer-sent', 'transfer-completed', 'transfer-returned',
        'payout-sent', 'payout-confirmed', 'payout-failed', 'disputed', 'dispute-won')
    union
    select a.client_id, a.payment_id from payment_alias a where a.provider_reference = any (of_references)
    union
    select p.client_id, p.payment_id from payment p
    where p.connector = of_connector and p.transaction_id = any (of_references)
      and p.provider_reference = p.order_id::text || '/' || p.transaction_id
      and p.kind in ('payout-sent', 'payout-confirmed', 'payout-failed')
  )
  select p.payment_id, p.provider_reference,
    case p.kind when 'transfer-completed' then 'transfer-sent' when 'payout-confirmed' then 'payout-sent' else p.kind end,
    case when p.kind in ('received', 'deposit-received', 'transfer-returned', 'payout-failed', 'dispute-won')
      then p.amount else -p.amount end,
    p.currency, p.occurred_at, p.recorded_at,
    p.provider_reference = any (of_references)
      or coalesce(p.transaction_id = any (of_references)
        and p.provider_reference = p.order_id::text || '/' || p.transaction_id, false)
      or exists (
        select from payment_alias a
        where a.client_id = p.client_id and a.payment_id = p.payment_id and a.provider_reference = any (of_references)),
    p.kind in ('refunded', 'disputed') and p.original_reference is null,
    p.client_id::text || '/' || p.order_id::text
  from named n
  join payment p on p.client_id = n.client_id and p.payment_id = n.payment_id
  where p.connector = of_connector
    -- the rest of what was confirmed is of the same line
    and not (p.kind = 'refunded' and exists (
      select from refund_of_rest(of_connector, p.provider_reference, p.amount)))
  union all
  select c.payment_id, c.provider_reference, p.kind, -c.amount - c.rest, p.currency, c.occurred_at, c.recorded_at,
    c.provider_reference = any (of_references), false, null
  from refund_confirmation c
  join payment p on p.client_id = c.client_id and p.payment_id = c.payment_id
  where c.connector = of_connector and c.provider_reference = any (of_references || of_earlier)
$$;
