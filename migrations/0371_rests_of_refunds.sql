-- Two statements of the reconciliation decide alike which payment is the rest of a refund by hand.

-- The refund by hand of which more was told under this reference, if that was this much more: the payment of it is of the same
-- line of a statement.
create function refund_of_rest(of_connector text, of_reference text, of_amount numeric) returns table (payment_id uuid)
language sql stable as $$
  select c.payment_id from refund_confirmation c
  where c.connector = of_connector and c.provider_reference = of_reference and c.rest = of_amount
$$;
