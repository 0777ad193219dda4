-- A dispute withdrew of the refunds of its payment what exceeded the payment, but for what persons had given back of it at its
-- provider: with that, more went back than had come in.

-- What its provider has told of as given back of a payment, beyond what was set aside for that and the payment's refunds explain.
create function given_back_unasked(of_client uuid, of_payment uuid) returns table (amount numeric)
language sql stable as $$
  select greatest(coalesce((
      select sum(b.amount) from payment b
      where b.connector = p.connector and b.kind = 'refunded' and b.currency = p.currency
        and coalesce(b.original_reference, b.provider_reference) = p.provider_reference), 0)
    - (told.amount - unasked.amount), 0)
  from payment p
  cross join lateral refunds_told(p.client_id, p.payment_id) told
  cross join lateral refunds_told_unasked(p.client_id, p.payment_id, null) unasked
  where p.client_id = of_client and p.payment_id = of_payment
$$;
