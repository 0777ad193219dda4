-- no-transaction
-- optional: edges serve without it
-- Savings plans of all partners, of which operators list the newest.
create index concurrently if not exists dca_plan_newest_idx on dca_plan (created_at, code);
