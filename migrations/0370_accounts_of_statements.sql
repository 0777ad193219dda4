-- The last statement of a connector hid what was open of another account of it: each account has a last one of its own.

-- The accounts that the statement has lines of: their IBAN, which is empty where it names none, and their currency.
-- null: an edge of the version before has stored it
alter table reconciliation add column accounts jsonb;

-- The last reconciliation of each account. A statement that names none is of any account of its currency, and one whose
-- accounts are not known of all accounts of its connector.
create function last_reconciliations()
returns table (reconciliation_id uuid, connector text, account text, currency text)
language sql stable as $$
  with last as (
    select distinct on (r.connector, a.currency, a.account)
      r.reconciliation_id, r.connector, a.account, a.currency, r.created_at
    from reconciliation r
    -- not known: one row without a currency
    cross join lateral jsonb_to_recordset(coalesce(r.accounts, '[{}]'::jsonb)) as a (account text, currency text)
    order by r.connector, a.currency, a.account, r.created_at desc, r.reconciliation_id desc
  )
  select l.reconciliation_id, l.connector, l.account, l.currency
  from last l
  where not exists (
    select from last n
    where n.connector = l.connector
      and (n.created_at, n.reconciliation_id) > (l.created_at, l.reconciliation_id)
      and (n.currency is null or l.currency is null
        or n.currency = l.currency and (n.account = '' or l.account = '' or n.account = l.account)))
$$;
