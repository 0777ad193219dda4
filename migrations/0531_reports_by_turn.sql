-- no-transaction
-- optional: edges serve without it
-- The worker of the sandbox reads its reports partner by partner, by the index of 0287.
drop index concurrently if exists command_report_due_idx;
