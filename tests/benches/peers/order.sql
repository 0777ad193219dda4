\set number random(@first@, @last@)
select 0::bigint as place, order_id, created_at, partner_reference, status, status_cause,
    status_reason, pair, payment_method, wallet_type, wallet_address, destination_tag, fiat_amount,
    fiat_currency, crypto_amount, crypto_currency, partner_fee, partner_fee_percentage,
    provider_fee, payment_method_fee, network_fee, spread_fee, affiliate_fee, is_dca_order,
    is_estimated_quote, transaction_id, expires_at
from buy_order
where client_id = '@client@' and order_id = coalesce(
    (select order_id from buy_order
     where client_id = '@client@' and (null::uuid is null or user_id = null::uuid)
         and order_id = :number),
    (select order_id from buy_order
     where client_id = '@client@' and (null::uuid is null or user_id = null::uuid)
         and partner_reference = :number::text
     order by created_at desc, order_id desc limit 1));
