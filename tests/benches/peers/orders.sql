-- Orders of one client, a second apart.
insert into buy_order (
    client_id, order_id, quote_id, partner_reference, status, status_cause, pair, payment_method,
    wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, crypto_currency, price,
    partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee, spread_fee,
    affiliate_fee, is_estimated_quote, return_url, terms_digest, expires_at, created_at, updated_at)
select '@client@', n, lpad(to_hex(n), 32, '0')::uuid, 'order-' || n, 'completed', 'confirmed-on-chain',
    'BTC-EUR', 'creditCard', 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', 'unhosted', 250, 'EUR',
    0.00262011, 'BTC', 90000, 2.5, 1, 2.5, 6.5, 1.5, 1.19, 0, false, 'https://shop.example/back',
    sha256(n::text::bytea), at + interval '15 minutes', at, at
from (
    select n, timestamptz '2020-01-01' + (n - 1000000000) * interval '1 second' as at
    from generate_series(@first@::bigint, @last@::bigint) n
) numbered;
