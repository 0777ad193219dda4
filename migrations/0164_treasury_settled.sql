-- The part of the treasury's sums that cannot change any more: a round of the books adds what came since, and need
-- not read all postings there have ever been in one statement.
alter table ledger_check
  -- the last entry in `treasury_settled`
  add column treasury_place uuid not null default '00000000-0000-0000-0000-000000000000',
  -- {"BTC": 1.5}
  add column treasury_settled jsonb not null default '{}';
