-- Routes of the money of every method but one and of all coins for live partners, behind those of many
-- others; partner `@partner@` is one that operators have taken live.
insert into connector (name, capabilities, created_by, created_at)
values ('bench', '{payment.create,payout.send,screening.check}', 'benchmark', now())
on conflict do nothing;

insert into route (position, partner, payment_method, direction, connector)
select n, 'client-' || 1 + n % 10, (select min(code) from payment_method), 'in', 'bench'
from generate_series(1, 9000) n
union all
select 9000 + row_number() over (order by code), null, code, 'in', 'bench' from payment_method
where code <> (select max(code) from payment_method);

insert into route (position, asset, direction, connector)
select 10000 + row_number() over (order by asset), asset, 'out', 'bench'
from (select distinct base_currency as asset from currency_pair) coins;

-- A price without an end is none for a live partner.
update currency_pair set price_max_age_seconds = 86400 where price_max_age_seconds is null;

update change_counter set revision = revision + 1 where scope in ('catalogue', 'clients');
update client set mode = 'live', revision = (select revision from change_counter where scope = 'clients')
where slug = '@partner@';
