-- no-transaction
-- optional: edges serve without it
-- Deliveries to one webhook endpoint, newest first (ids are UUIDs of version 7).
create index concurrently if not exists delivery_endpoint_idx on delivery
  (client_id, endpoint_id, delivery_id desc) where endpoint_id is not null;
