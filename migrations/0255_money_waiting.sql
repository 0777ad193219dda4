-- What waits for an operator without the books of refunds of long ago: those of every refund ever made were read, by each
-- page that counts it and by the metrics every ten seconds. What connectors give back is one rule for what waits, what is
-- to be given back by hand and what a report by hand withdraws.

-- What connectors give back of an order, or of what has none, and may have given back: by commands that have not ended, and
-- by those that are done as far as no connector has told of it yet; of these what has ended within seven days.
create function refunds_under_way(of_client uuid, of_order bigint, of_currency text)
returns table (open numeric, untold numeric, recent numeric)
language sql stable as $$
  select made.open, greatest(made.done - told.amount, 0), least(made.recent, greatest(made.done - told.amount, 0))
  from (
    select coalesce(sum(m.amount) filter (where m.state = 'open'), 0) as open,
      coalesce(sum(m.amount) filter (where m.state = 'done'), 0) as done,
      coalesce(sum(m.amount) filter (
        where m.state = 'done' and m.finished_at > rampart_now() - interval '7 days'), 0) as recent
    from (
      select r.amount, c.state, c.finished_at
      from command c
      join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
      join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
      where c.client_id = of_client and c.order_id = of_order and c.kind = 'payment.refund' and p.currency = of_currency
      union all
      -- those of payments without an order, which are in suspense: no index has their commands
      select r.amount, c.state, c.finished_at
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
      union all
      select p.amount
      from ledger_entry e
      join payment p on p.client_id = e.client_id and p.payment_id = e.payment_id
      where of_order is null and e.client_id = of_client and e.order_id is null and e.kind = 'refunded'
        and p.connector <> 'manual' and p.currency = of_currency
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

-- The part of a payment that is in suspense because its refund was withdrawn after its order had been executed, without what was
-- asked for since: zero if all of it was, below zero if what was asked for is more and came from the order's customer instead.
create function withdrawn_into_suspense(of_client uuid, of_payment uuid) returns table (amount numeric)
language sql stable as $$
  select coalesce(withdrawn.amount, 0) - coalesce((
    select sum(r.amount - case when w.owed_in = 'customer' then w.amount else 0 end)
    from payment_refund r
    left join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
    where r.client_id = of_client and r.payment_id = of_payment and r.requested_at > withdrawn.since), 0)
  from (
    select sum(w.amount) as amount, min(w.withdrawn_at) as since
    from payment_refund r
    join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
    where r.client_id = of_client and r.payment_id = of_payment and w.owed_in = 'suspense'
  ) withdrawn
$$;

-- What is still to be given back by hand, by payment. A refund by hand names no payment: of an order, or of what has none, the
-- oldest are made first. What was set aside there and no command makes is what is left to be made.
create or replace function refunds_by_hand()
returns table (client_id uuid, payment_id uuid, amount numeric)
language sql stable as $$
  with unexpected as (
    select p.client_id, p.payment_id, p.currency, r.amount, r.requested_at,
      -- an order that does not exist is none
      coalesce(
        (select o.order_id from buy_order o where o.client_id = p.client_id and o.order_id = p.order_id),
        (select o.order_id from sell_order o where o.client_id = p.client_id and o.order_id = p.order_id)) as order_id
    from payment p
    join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
    where p.suspense
      and not exists (select from payment_match m where m.client_id = p.client_id and m.payment_id = p.payment_id)
      and not exists (select from command c
        where c.client_id = p.client_id and c.idempotency_key = 'refund/' || r.refund_id::text)
  ), set_aside as materialized (
    -- most were given back long ago: nothing else is read of their books
    select b.client_id, b.order_id, b.currency, s.amount
    from (select distinct u.client_id, u.order_id, u.currency from unexpected u) b
    cross join lateral (
      select coalesce(-sum(l.amount), 0) as amount
      from (
        select e.entry_id from ledger_entry e where e.client_id = b.client_id and e.order_id = b.order_id
        union all
        select e.entry_id from ledger_entry e
        where e.client_id = b.client_id and e.order_id is null and b.order_id is null
      ) entry
      join ledger_posting l on l.client_id = b.client_id and l.entry_id = entry.entry_id
      join ledger_account t on t.client_id = l.client_id and t.account_id = l.account_id
      where t.kind = 'refund_payable' and t.currency = b.currency
    ) s
    where s.amount > 0
  ), books as (
    select b.client_id, b.order_id, b.currency, b.amount - k.open - k.untold as owed
    from set_aside b
    cross join lateral refunds_under_way(b.client_id, b.order_id, b.currency) k
    where b.amount > k.open + k.untold
  ), asked as (
    select f.book, f.order_id, f.currency, f.client_id, f.payment_id,
      sum(f.amount) as amount, max(f.requested_at) as requested_at
    from (
      select u.client_id as book, u.order_id, u.currency, u.client_id, u.payment_id, u.amount, u.requested_at
      from unexpected u
      union all
      select b.client_id, b.order_id, b.currency, own.client_id, own.payment_id, r.amount, r.requested_at
      from books b
      cross join lateral (
        select p.client_id, p.payment_id from payment p
        where p.client_id = b.client_id and p.order_id = b.order_id and p.currency = b.currency and not p.suspense
        union all
        select p.client_id, p.payment_id from payment_match m
        join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
        where m.to_client_id = b.client_id and m.order_id = b.order_id and p.currency = b.currency
      ) own
      join payment_refund r on r.client_id = own.client_id and r.payment_id = own.payment_id
      where not exists (select from command c
        where c.client_id = b.client_id and c.idempotency_key = 'refund/' || r.refund_id::text)
    ) f
    group by f.book, f.order_id, f.currency, f.client_id, f.payment_id
  ), ranked as (
    select a.book, a.order_id, a.currency, a.client_id, a.payment_id, a.amount,
      coalesce(sum(a.amount) over (
        partition by a.book, a.order_id, a.currency order by a.requested_at desc, a.payment_id desc
        rows between unbounded preceding and 1 preceding), 0) as newer
    from asked a
  )
  select r.client_id, r.payment_id, least(r.amount, b.owed - r.newer)
  from ranked r
  join books b on b.client_id = r.book and b.currency = r.currency
    and b.order_id is not distinct from r.order_id
  where b.owed > r.newer
$$;

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
      -- of the books of earlier refunds, of all that ever were, those alone are read of which a part is under way or in suspense
      select a.client_id, a.payment_id from payment_refund a
      where a.requested_at > rampart_now() - interval '90 days'
      union
      select a.client_id, a.payment_id
      from command c
      join payment_refund a on 'refund/' || a.refund_id::text = c.idempotency_key
      where c.kind = 'payment.refund' and c.state = 'open'
      union
      -- at any age, but for what was asked for again as a whole, whose own age counts. No index finds them, for they are few;
      -- what was given back by hand instead names no payment, so that the book is read for good
      select a.client_id, a.payment_id
      from payment_refund_withdrawal w
      join payment_refund a on a.client_id = w.client_id and a.refund_id = w.refund_id
      cross join lateral withdrawn_into_suspense(a.client_id, a.payment_id) still
      where w.owed_in = 'suspense' and still.amount <> 0
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
    -- what has no order is one book of each client, and no check of orders finds what it owes: from its first refund on the
    -- whole of it is read, once for each of its currencies
    select t.client_id, null::bigint, t.currency from ledger_account t
    where t.kind = 'refund_payable' and exists (
      select from payment p
      join payment_refund r on r.client_id = p.client_id and r.payment_id = p.payment_id
      where p.client_id = t.client_id and p.currency = t.currency and p.suspense and p.order_id is null)
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
      -- of a book that has set nothing aside no command is read
      select coalesce(sum(u.open + u.recent), 0) as amount
      from refunds_under_way(b.client_id, b.number, b.currency) u
      where b.set_aside > 0
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
