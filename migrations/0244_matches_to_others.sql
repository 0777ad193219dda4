-- no-transaction
-- optional: edges serve without it
-- Payments that were matched to another partner's order, such as those of nobody: a search names the partner of the order.
create index concurrently if not exists payment_match_others_idx on payment_match (to_client_id)
  where to_client_id <> client_id;
