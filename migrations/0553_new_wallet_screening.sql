-- The screening of a bought order's wallet, with its command, as the statement that writes the order takes it: one statement writes
-- all of them, for the users of a batch are locked meanwhile.
create type new_wallet_screening as (
  client_id uuid,
  order_id bigint,
  screening_id uuid,
  decision text,
  command_id uuid,
  idempotency_key text,
  connector text,
  sealed_body bytea,
  sealed_result bytea,
  state text,
  delay_ms bigint
);
