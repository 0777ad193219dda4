-- no-transaction
-- Lanes with something to send, and what each of them sends next: the nil UUID is the lane of orders'
-- callbacks.
create index concurrently if not exists delivery_ready_idx on delivery
  (client_id, coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid), next_attempt_at,
   event_id)
  where state = 'pending' and ready;
