-- no-transaction
-- optional: edges serve without it
-- The payments of a connector in the days of a statement: all of the connector's were sorted.
create index concurrently if not exists payment_connector_idx on payment (connector, occurred_at, payment_id);
