-- no-transaction
-- optional: edges serve without it
-- Reports of connectors that are kept, oldest first: old ones are deleted (retention.report_days).
create index concurrently if not exists connector_event_kept_idx on connector_event (report_id)
  where sealed_report is not null;
