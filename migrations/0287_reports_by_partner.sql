-- no-transaction
-- optional: edges serve without it
-- Reports of the sandbox by partner: its worker takes turns between them.
create index concurrently if not exists command_report_turn_idx on command (client_id, report_due_at)
  where report_due_at is not null;
