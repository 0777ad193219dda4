-- no-transaction
-- Deliveries in the order in which they become ready.
create index concurrently if not exists delivery_waiting_idx on delivery
  (greatest(next_attempt_at, leased_until))
  where state = 'pending' and not ready;
