-- What waits for an operator without the books of refunds of long ago: those of every refund ever made were read, by each
-- page that counts it and by the metrics every ten seconds.

-- A payment in suspense waits as far as it is neither to be given back nor was, its provider has not taken it back, and the
-- book's suspense has it: of what was given back without a name the oldest are first. A refund that its connector has made
-- waits once its end was not told for seven days. An order waits whose suspense or whose disputes owe more than that; for
-- a refund that was asked for 90 days ago it is a problem of the books instead (`rampart ledger check`).
create or replace function money_waiting()
returns table (client_id uuid, order_id bigint, payment_id uuid, reason text, since timestamptz)
language sql stable as $$
  with unclaimed as materialized (
    -- most were given back long ago: nothing else is read of them
    select p.client_id, o.number, p.payment_id, p.connector, p.provider_reference, p.currency, p.amount,
      p.recorded_at, r.amount as requested
    from payment p
    cross join lateral refund_requested(p.client_id, p.payment_id) r
    -- an order that does not exist is none
    cross join lateral (
      select coalesce(
        (select b.order_id from buy_order b where b.client_id = p.client_id and b.order_id = p.order_id),
        (select l.order_id from sell_order l where l.client_id = p.client_id and l.order_id = p.order_id)) as number
    ) o
    where p.suspense and r.amount < p.amount
      and not exists (select from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id)
  ), arrived as materialized (
    select u.client_id, u.number, u.payment_id, u.currency, u.recorded_at, rest.amount, least(rest.taken, rest.amount) as taken
    from unclaimed u
    cross join lateral (
      -- a refund that was asked for may be one that was told
      select u.amount - greatest(u.requested, coalesce(sum(p.amount) filter (where p.kind = 'refunded'), 0)) as amount,
        greatest(coalesce(sum(case p.kind when 'disputed' then p.amount when 'dispute-won' then -p.amount end), 0), 0) as taken
      from payment p
      where p.connector = u.connector and p.currency = u.currency
        and coalesce(p.original_reference, p.provider_reference) = u.provider_reference
        and p.kind in ('refunded', 'disputed', 'dispute-won', 'dispute-lost')
    ) rest
    where rest.amount > 0
  ), candidate as (
    select a.client_id, a.number, a.currency from arrived a
    union
    -- row by row: no plan reads the payments from end to end
    select f.client_id, f.number, f.currency
    from (
      -- of the books of earlier refunds, of all that ever were, none is read
      select a.client_id, a.payment_id from payment_refund a
      where a.requested_at > rampart_now() - interval '90 days'
      union
      select a.client_id, a.payment_id
      from command c
      join payment_refund a on 'refund/' || a.refund_id::text = c.idempotency_key
      where c.kind = 'payment.refund' and c.state = 'open'
      union
      select a.client_id, a.payment_id
      from payment_refund_withdrawal w
      join payment_refund a on a.client_id = w.client_id and a.refund_id = w.refund_id
      where w.owed_in = 'suspense'
    ) r
    cross join lateral (
      select coalesce(m.to_client_id, p.client_id) as client_id, p.currency,
        coalesce(m.order_id,
          (select b.order_id from buy_order b where b.client_id = p.client_id and b.order_id = p.order_id),
          (select l.order_id from sell_order l where l.client_id = p.client_id and l.order_id = p.order_id)) as number
      from payment p
      left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
      where p.client_id = r.client_id and p.payment_id = r.payment_id
      offset 0
    ) f
    union
    -- what has no order is one book of each client, and no check of orders finds what it owes
    select t.client_id, null::bigint, t.currency from ledger_account t where t.kind = 'refund_payable'
    union
    select p.client_id, p.order_id, p.currency from payment p where p.kind = 'dispute-won' and p.order_id is not null
  ), book as materialized (
    select b.client_id, b.number, b.currency, s.in_suspense, s.set_aside, s.disputed, s.since
    from candidate b
    cross join lateral (
      select coalesce(-sum(line.amount) filter (where t.kind = 'suspense'), 0) as in_suspense,
        coalesce(-sum(line.amount) filter (where t.kind = 'refund_payable'), 0) as set_aside,
        coalesce(sum(line.amount) filter (where t.kind = 'dispute'), 0) as disputed,
        max(line.recorded_at) as since
      from (
        select l.account_id, l.amount, e.recorded_at
        from ledger_entry e
        join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
        where e.client_id = b.client_id and e.order_id = b.number
        union all
        select l.account_id, l.amount, e.recorded_at
        from ledger_entry e
        join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
        where e.client_id = b.client_id and e.order_id is null and b.number is null
      ) line
      join ledger_account t on t.client_id = b.client_id and t.account_id = line.account_id
      where t.currency = b.currency and t.kind in ('suspense', 'refund_payable', 'dispute')
    ) s
    where s.in_suspense > 0 or s.set_aside > 0 or s.disputed < 0
  ), in_suspense as materialized (
    select r.client_id, r.number, r.payment_id, r.currency, r.recorded_at, r.taken,
      greatest(least(r.amount, r.available - r.newer), 0) as amount
    from (
      select a.client_id, a.number, a.payment_id, a.currency, a.recorded_at, a.taken, a.amount - a.taken as amount,
        b.in_suspense - sum(a.taken) over (partition by a.client_id, a.number, a.currency) as available,
        coalesce(sum(a.amount - a.taken) over (
          partition by a.client_id, a.number, a.currency order by a.recorded_at desc, a.payment_id desc
          rows between unbounded preceding and 1 preceding), 0) as newer
      from arrived a
      join book b on b.client_id = a.client_id and b.currency = a.currency and b.number is not distinct from a.number
    ) r
  ), by_hand as materialized (
    select p.client_id, p.payment_id, p.currency, p.recorded_at, h.amount,
      coalesce(
        (select b.order_id from buy_order b where b.client_id = p.client_id and b.order_id = p.order_id),
        (select l.order_id from sell_order l where l.client_id = p.client_id and l.order_id = p.order_id)) as number
    from refunds_by_hand() h
    join payment p on p.client_id = h.client_id and p.payment_id = h.payment_id
    where p.suspense
      and not exists (select from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id)
  ), returned as materialized (
    select r.client_id, r.order_id as number, r.currency, r.since from returned_payouts() r
  ), owed as (
    select b.client_id, b.number, max(b.since) as since
    from book b
    cross join lateral (
      select coalesce(sum(i.amount + i.taken), 0) as explained, coalesce(sum(i.taken), 0) as taken
      from in_suspense i
      where i.client_id = b.client_id and i.currency = b.currency and i.number is not distinct from b.number
    ) paid
    cross join lateral (
      select coalesce(sum(h.amount), 0) as amount
      from by_hand h
      where h.client_id = b.client_id and h.currency = b.currency and h.number is not distinct from b.number
    ) hand
    cross join lateral (
      -- what connectors have told of
      select coalesce(sum(given.amount), 0) as amount
      from (
        select p.amount from payment p
        where p.client_id = b.client_id and p.order_id = b.number and p.kind = 'refunded'
          and p.connector <> 'manual' and p.currency = b.currency and b.set_aside > 0
        union all
        select p.amount
        from ledger_entry e
        join payment p on p.client_id = e.client_id and p.payment_id = e.payment_id
        where b.number is null and b.set_aside > 0 and e.client_id = b.client_id and e.order_id is null
          and e.kind = 'refunded' and p.connector <> 'manual' and p.currency = b.currency
          -- one that nobody commanded is of a payment that no command has given back
          and not exists (
            select from payment o
            where o.connector = p.connector and o.kind = 'received'
              and o.provider_reference = coalesce(p.original_reference, p.provider_reference)
              and not exists (select from payment_refund r
                join command c on c.client_id = e.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
                where r.client_id = o.client_id and r.payment_id = o.payment_id and c.state = 'done'))
      ) given
    ) told
    cross join lateral (
      select coalesce(sum(made.amount) filter (where made.state = 'open'), 0)
        + least(
          coalesce(sum(made.amount) filter (
            where made.state = 'done' and made.finished_at > rampart_now() - interval '7 days'), 0),
          greatest(coalesce(sum(made.amount) filter (where made.state = 'done'), 0) - told.amount, 0)) as amount
      from (
        select r.amount, c.state, c.finished_at
        from command c
        join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
        join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
        where c.client_id = b.client_id and c.order_id = b.number and c.kind = 'payment.refund'
          and p.currency = b.currency and b.set_aside > 0
        union all
        -- those of payments without an order, which are in suspense: no index has their commands
        select r.amount, c.state, c.finished_at
        from payment p
        join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
        join command c on c.client_id = b.client_id and c.idempotency_key = 'refund/' || r.refund_id::text
        where b.number is null and b.set_aside > 0 and p.client_id = b.client_id and p.suspense
          and p.currency = b.currency and c.order_id is null
      ) made
    ) under_way
    where b.set_aside > under_way.amount + hand.amount
      or b.number is not null and b.disputed < 0
      -- a dispute has taken of it what is not of a payment in suspense
      or b.number is not null and b.in_suspense > paid.explained + greatest(b.disputed - paid.taken, 0)
        and not exists (select from returned x
          where x.client_id = b.client_id and x.number = b.number and x.currency = b.currency)
    group by b.client_id, b.number
  )
  select w.client_id, w.number, w.payment_id, 'payment', w.recorded_at
  from (
    select i.client_id, i.number, i.payment_id, i.recorded_at from in_suspense i where i.amount > 0
    union
    select h.client_id, h.number, h.payment_id, h.recorded_at from by_hand h
  ) w
  union all
  select o.client_id, o.number, null, 'owed', o.since from owed o
  union all
  select r.client_id, r.number, null, 'returned', r.since from returned r
$$;
