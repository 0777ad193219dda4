-- no-transaction
-- optional: edges serve without it
-- Commands after which the sandbox has something to tell.
create index concurrently if not exists command_report_due_idx on command (report_due_at)
  where report_due_at is not null;
