-- optional: edges serve without it
-- A refund of a payment without an order, of which nobody knows if it was made, stood in no queue: that of reviews has orders and
-- users alone.

-- A payment in suspense waits as far as it is neither to be given back nor was, its provider has not taken it back, and the
-- book's suspense has it: of what was given back without its name the oldest are first. A refund that its connector has made
-- waits once its end was not told for seven days. An order waits whose suspense or whose disputes owe more than that; for
-- a refund that was asked for 90 days ago it is a problem of the books instead (`rampart ledger check`). An order waits, too,
-- of which more has left than it owes (`excess`), or which owes a part of its payout that no command sends (`shortfall`). A
-- payment without an order waits, too, while nobody knows if its refund was made.
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
      -- by hand, under its reference; of a payment by hand that is told with the others
      select coalesce(sum(b.amount), 0) as amount from payment b
      where b.connector = 'manual' and b.kind = 'refunded' and b.provider_reference = u.provider_reference
        and u.connector <> 'manual' and b.currency = u.currency and b.client_id = u.client_id
        and b.order_id is not distinct from u.number
    ) by_hand
    cross join lateral (
      -- a refund that was asked for may be one that was told
      select u.amount - greatest(u.requested,
          coalesce(sum(p.amount) filter (where p.kind = 'refunded'), 0) + by_hand.amount) as amount,
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
  ), excess as (
    select x.client_id, x.number, s.since
    -- an index has them: few, for it is somebody's mistake
    from (select distinct e.client_id, e.order_id as number from ledger_entry e where e.kind = 'payout-excess') x
    cross join lateral (
      select max(debit.since) as since
      from (
        select max(e.recorded_at) as since
        from ledger_entry e
        join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
        join ledger_account t on t.client_id = l.client_id and t.account_id = l.account_id
        where e.client_id = x.client_id and e.order_id = x.number and t.kind = 'suspense'
        group by t.currency
        having sum(l.amount) > 0
      ) debit
    ) s
    where s.since is not null
  ), in_parts as materialized (
    -- orders under way of whose payout something has left or come back: the books of others are not read
    select o.client_id, o.number, o.currency, o.payout, told.since, told.returned
    from (
      select b.client_id, b.order_id as number, b.crypto_currency as currency, b.crypto_amount as payout
      from buy_order b where b.status = 'in progress'
      union all
      select l.client_id, l.order_id, l.fiat_currency, l.fiat_amount
      from sell_order l where l.status = 'in progress'
    ) o
    cross join lateral (
      select max(p.recorded_at) as since,
        (array_agg(p.amount order by p.recorded_at desc, p.payment_id desc)
          filter (where p.kind in ('payout-failed', 'transfer-returned')))[1] as returned
      from payment p
      where p.client_id = o.client_id and p.order_id = o.number and p.currency = o.currency
        and p.kind in ('payout-sent', 'payout-confirmed', 'payout-failed', 'transfer-sent', 'transfer-completed',
          'transfer-returned')
    ) told
    where told.since is not null
  ), shortfall as (
    select s.client_id, s.number, s.since
    from in_parts s
    cross join lateral (
      select -sum(l.amount) as owed
      from ledger_entry e
      join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
      join ledger_account t on t.client_id = l.client_id and t.account_id = l.account_id
      where e.client_id = s.client_id and e.order_id = s.number and t.kind = 'payout_payable' and t.currency = s.currency
    ) rest
    cross join lateral (
      select count(*) as open from command c
      where c.client_id = s.client_id and c.order_id = s.number and c.kind in ('payout.send', 'transfer.send')
        and c.state = 'open'
    ) under_way
    -- what came back last is sent again by command, as the whole payout is
    where rest.owed > 0 and rest.owed < s.payout and rest.owed is distinct from s.returned and under_way.open = 0
  )
  select w.client_id, w.number, w.payment_id, 'payment', w.recorded_at
  from (
    select i.client_id, i.number, i.payment_id, i.recorded_at from in_suspense i where i.amount > 0
    union
    select h.client_id, h.number, h.payment_id, h.recorded_at from by_hand h
    union
    select p.client_id, null::bigint, p.payment_id, p.recorded_at
    from command c
    join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
    join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
    where c.review = 'unknown' and c.state = 'open' and c.kind = 'payment.refund' and c.order_id is null
  ) w
  union all
  select o.client_id, o.number, null, 'owed', o.since from owed o
  union all
  select r.client_id, r.number, null, 'returned', r.since from returned r
  union all
  select x.client_id, x.number, null, 'excess', x.since from excess x
  union all
  select s.client_id, s.number, null, 'shortfall', s.since from shortfall s
$$;
