-- Refunds and disputes that were recorded before 0270, before their payment and without an order: they are in the book of what
-- has no order, though the payment has found its own. They follow it, as those do that came later. Those of a payment that
-- its order did not want stay: it is given back without them.

set local rampart.all_tenants = 'on';

create temporary table early on commit drop as
select r.client_id, r.payment_id, r.kind, r.amount, r.currency, r.recorded_at, paid.to_client_id, paid.order_id,
  v7.prefix || substr(replace(gen_random_uuid()::text, '-', ''), 14) as out_id,
  v7.prefix || substr(replace(gen_random_uuid()::text, '-', ''), 14) as into_id,
  case when r.kind in ('refunded', 'disputed') then r.amount when r.kind = 'dispute-won' then -r.amount else 0 end as taken
from payment r
-- the ids of entries begin with their time (RFC 9562, section 5.7): the treasury is summed in their order
cross join (select lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0') || '7') v7 (prefix)
cross join lateral (
  select coalesce(m.to_client_id, p.client_id) as to_client_id,
    coalesce(m.order_id,
      (select o.order_id from buy_order o where o.client_id = p.client_id and o.order_id = p.order_id),
      (select o.order_id from sell_order o where o.client_id = p.client_id and o.order_id = p.order_id)) as order_id
  from payment p
  left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
  where p.connector = r.connector and p.kind in ('received', 'deposit-received')
    and p.provider_reference = any (array(
      select coalesce(r.original_reference, r.provider_reference)
      union all
      -- the end of a dispute may name the dispute alone
      select d.original_reference from payment d
      where d.connector = r.connector and d.kind = 'disputed' and d.provider_reference = r.provider_reference))
    and (m.payment_id is not null or not p.suspense)
    and r.recorded_at <= coalesce(m.matched_at, p.recorded_at)
    -- what names another partner is of another payment
    and r.client_id in (p.client_id, coalesce(m.to_client_id, p.client_id), '00000000-0000-7000-8000-000000000001')
  order by p.recorded_at limit 1
) paid
where r.kind in ('refunded', 'disputed', 'dispute-won', 'dispute-lost') and paid.order_id is not null
  and not exists (select from payment_match m where m.client_id = r.client_id and m.payment_id = r.payment_id)
  and not exists (select from buy_order o where o.client_id = r.client_id and o.order_id = r.order_id)
  and not exists (select from sell_order o where o.client_id = r.client_id and o.order_id = r.order_id);

insert into payment_match (client_id, payment_id, to_client_id, order_id, actor)
select client_id, payment_id, to_client_id, order_id, 'edge' from early;

create temporary table early_line on commit drop as
select line.client_id, line.entry_id, line.order_id, e.payment_id, line.number, line.kind, e.currency, line.holder, line.amount
from early e
cross join lateral (
  -- where the money or the coins are
  select a.kind, a.holder
  from ledger_entry x
  join ledger_posting l on l.client_id = x.client_id and l.entry_id = x.entry_id
  join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
  where x.client_id = e.client_id and x.payment_id = e.payment_id and a.kind in ('provider', 'treasury')
  limit 1
) held
cross join lateral (
  -- what it has taken of what was set aside for others, without what these have taken of suspense instead
  select greatest(coalesce(sum(l.amount) filter (where a.kind = 'refund_payable' and x.payment_id = e.payment_id), 0)
      - coalesce(sum(l.amount) filter (where a.kind = 'suspense' and x.payment_id <> e.payment_id), 0), 0) as set_aside
  from ledger_entry x
  join ledger_posting l on l.client_id = x.client_id and l.entry_id = x.entry_id
  join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
  where e.kind = 'refunded' and x.kind = 'refunded' and x.client_id = e.client_id and x.order_id is null
    and x.recorded_at >= e.recorded_at and a.currency = e.currency
    and (x.payment_id = e.payment_id
      or not exists (select from payment_match m where m.client_id = x.client_id and m.payment_id = x.payment_id))
) others
cross join lateral (values
  (e.client_id, e.out_id::uuid, null::bigint, 1::smallint, held.kind, held.holder, e.taken),
  (e.client_id, e.out_id::uuid, null, 2, 'refund_payable', '', -others.set_aside),
  (e.client_id, e.out_id::uuid, null, 3, case e.kind when 'refunded' then 'suspense' else 'dispute' end, '',
    others.set_aside - e.taken),
  (e.to_client_id, e.into_id::uuid, e.order_id, 1, 'dispute', '', e.taken),
  (e.to_client_id, e.into_id::uuid, e.order_id, 2, held.kind, held.holder, -e.taken)
) as line (client_id, entry_id, order_id, number, kind, holder, amount)
where line.amount <> 0;

insert into ledger_account (client_id, account_id, kind, currency, holder)
select distinct client_id, ledger_account_id(client_id, kind, currency, holder), kind, currency, holder from early_line
on conflict do nothing;

insert into ledger_entry (client_id, entry_id, kind, order_id, payment_id, occurred_at)
select distinct client_id, entry_id, 'matched', order_id, payment_id, now() from early_line;

insert into ledger_posting (client_id, entry_id, line, account_id, amount)
select client_id, entry_id, number, ledger_account_id(client_id, kind, currency, holder), amount from early_line;

-- What was reported of the payments of erased users goes.
update connector_event e set sealed_report = null
from early r
where e.payment_client_id = r.client_id and e.payment_id = r.payment_id
  and exists (select from erased_user_of(r.to_client_id, r.order_id));
delete from payment_report p using early r
where p.client_id = r.client_id and p.payment_id = r.payment_id
  and exists (select from erased_user_of(r.to_client_id, r.order_id));
