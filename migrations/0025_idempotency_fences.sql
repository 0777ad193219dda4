-- The request that holds an idempotency key: the answer is written by that one alone, so a request
-- that was taken for dead and is not cannot bring its effect about any more.
alter table idempotency_key add column claim_id uuid;
