-- The books of orders from before there were books: one entry for each whose money or coins have moved.

set local rampart.all_tenants = 'on';

-- Payments behind them, so that a refund finds what it gives back.
insert into payment (client_id, payment_id, connector, provider_reference, kind, amount, currency, order_id,
  suspense, actor, occurred_at)
select client_id, gen_random_uuid(), 'opening', 'buy-' || client_id || '-' || order_id, 'received',
  coalesce(nullif(paid_amount, 0), fiat_amount), fiat_currency, order_id, false, 'edge', updated_at
from buy_order where status in ('in progress', 'blocked', 'completed')
union all
select client_id, gen_random_uuid(), 'opening', 'sell-' || client_id || '-' || order_id, 'deposit-received',
  coalesce(nullif(received_amount, 0), crypto_amount), crypto_currency, order_id, false, 'edge', updated_at
from sell_order where status in ('in progress', 'blocked', 'completed');

create temporary table opening on commit drop as
with bought as (
  select client_id, order_id, updated_at, status, fiat_amount, fiat_currency, crypto_amount, crypto_currency,
    partner_fee + affiliate_fee as partner_fee, provider_fee, payment_method_fee, network_fee, spread_fee,
    coalesce(nullif(paid_amount, 0), fiat_amount) as received,
    -- a blocked order has been executed only if its coins have left
    status in ('in progress', 'completed') or transaction_id is not null as executed,
    status = 'completed' or transaction_id is not null as sent
  from buy_order where status in ('in progress', 'blocked', 'completed')
), sold as (
  select client_id, order_id, updated_at, status, fiat_amount, fiat_currency, crypto_amount, crypto_currency,
    partner_fee + affiliate_fee as partner_fee, provider_fee, payment_method_fee, network_fee, spread_fee,
    coalesce(nullif(received_amount, 0), crypto_amount) as received,
    status in ('in progress', 'completed') as executed,
    status = 'completed' as sent
  from sell_order where status in ('in progress', 'blocked', 'completed')
)
select client_id, order_id, updated_at, line, kind, currency, holder, amount
from bought cross join lateral (values
  (1, 'provider', fiat_currency, 'opening', received),
  (2, 'customer', fiat_currency, '', case when executed then fiat_amount - received else -received end),
  (3, 'fee_partner', fiat_currency, '', case when executed then -partner_fee else 0 end),
  (4, 'fee_provider', fiat_currency, '', case when executed then -provider_fee else 0 end),
  (5, 'fee_payment_method', fiat_currency, '', case when executed then -payment_method_fee else 0 end),
  (6, 'fee_network', fiat_currency, '', case when executed then -network_fee else 0 end),
  (7, 'spread', fiat_currency, '', case when executed then -spread_fee else 0 end),
  (8, 'conversion', fiat_currency, '', case when executed then partner_fee + provider_fee + payment_method_fee
    + network_fee + spread_fee - fiat_amount else 0 end),
  (9, 'conversion', crypto_currency, '', case when executed then crypto_amount else 0 end),
  (10, 'payout_payable', crypto_currency, '', case when executed and not sent then -crypto_amount else 0 end),
  (11, 'treasury', crypto_currency, '', case when sent then -crypto_amount else 0 end)
) as posting (line, kind, currency, holder, amount)
union all
select client_id, order_id, updated_at, line, kind, currency, holder, amount
from sold cross join lateral (values
  (1, 'treasury', crypto_currency, '', received),
  (2, 'customer', crypto_currency, '', case when executed then crypto_amount - received else -received end),
  (3, 'fee_partner', fiat_currency, '', case when executed then -partner_fee else 0 end),
  (4, 'fee_provider', fiat_currency, '', case when executed then -provider_fee else 0 end),
  (5, 'fee_payment_method', fiat_currency, '', case when executed then -payment_method_fee else 0 end),
  (6, 'fee_network', fiat_currency, '', case when executed then -network_fee else 0 end),
  (7, 'spread', fiat_currency, '', case when executed then -spread_fee else 0 end),
  (8, 'conversion', fiat_currency, '', case when executed then fiat_amount + partner_fee + provider_fee
    + payment_method_fee + network_fee + spread_fee else 0 end),
  (9, 'conversion', crypto_currency, '', case when executed then -crypto_amount else 0 end),
  (10, 'payout_payable', fiat_currency, '', case when executed and not sent then -fiat_amount else 0 end),
  (11, 'provider', fiat_currency, 'opening', case when sent then -fiat_amount else 0 end)
) as posting (line, kind, currency, holder, amount);

insert into ledger_account (client_id, account_id, kind, currency, holder)
select distinct client_id, ledger_account_id(client_id, kind, currency, holder), kind, currency, holder
from opening where amount <> 0
on conflict do nothing;

create temporary table opening_entry on commit drop as
select client_id, order_id, gen_random_uuid() as entry_id, max(updated_at) as updated_at
from opening group by client_id, order_id;

insert into ledger_entry (client_id, entry_id, kind, order_id, payment_id, occurred_at)
select e.client_id, e.entry_id, 'opening', e.order_id, p.payment_id, e.updated_at
from opening_entry e join payment p on p.client_id = e.client_id and p.order_id = e.order_id;

insert into ledger_posting (client_id, entry_id, line, account_id, amount)
select o.client_id, e.entry_id, o.line, ledger_account_id(o.client_id, o.kind, o.currency, o.holder), o.amount
from opening o join opening_entry e on e.client_id = o.client_id and e.order_id = o.order_id
where o.amount <> 0;
