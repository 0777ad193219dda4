-- Day-one data (section 5 of the contract). Prices are the operator's to set; these only start the demo.

insert into currency (code, kind, ticker, name, decimals, caip19) values
  ('EUR', 'fiat', 'EUR', 'Euro', 2, 'swift:0/iso4217:EUR'),
  ('GBP', 'fiat', 'GBP', 'Pound Sterling', 2, 'swift:0/iso4217:GBP'),
  ('USD', 'fiat', 'USD', 'US Dollar', 2, 'swift:0/iso4217:USD');

insert into currency
  (code, kind, ticker, name, decimals, caip19, chain, chain_name, address_explorer, transaction_explorer, supports_tag)
values
  ('BTC', 'crypto', 'BTC', 'Bitcoin', 8, 'bip122:000000000019d6689c085ae165831e93/slip44:0', 'bitcoin', null,
   'https://mempool.space/address/', 'https://mempool.space/tx/', false),
  ('ETH', 'crypto', 'ETH', 'Ether', 18, 'eip155:1/slip44:60', 'ethereum', null,
   'https://etherscan.io/address/', 'https://etherscan.io/tx/', false),
  ('LTC', 'crypto', 'LTC', 'Litecoin', 8, 'bip122:12a765e31ffd4059bada1e25190f6e98/slip44:2', 'litecoin', null,
   'https://litecoinspace.org/address/', 'https://litecoinspace.org/tx/', false),
  ('XRP', 'crypto', 'XRP', 'XRP', 6, 'xrpl:0/slip44:144', 'xrp', null,
   'https://livenet.xrpl.org/accounts/', 'https://livenet.xrpl.org/transactions/', true),
  ('XLM', 'crypto', 'XLM', 'Stellar Lumen', 7, 'stellar:pubnet/slip44:148', 'stellar', null,
   'https://stellar.expert/explorer/public/account/', 'https://stellar.expert/explorer/public/tx/', true),
  ('ADA', 'crypto', 'ADA', 'Cardano', 6, 'cip34:1-764824073/slip44:1815', 'cardano', null,
   'https://cardanoscan.io/address/', 'https://cardanoscan.io/transaction/', false),
  ('SOL', 'crypto', 'SOL', 'Solana', 9, 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/slip44:501', 'solana', null,
   'https://solscan.io/account/', 'https://solscan.io/tx/', false),
  ('DOGE', 'crypto', 'DOGE', 'Dogecoin', 8, 'bip122:1a91e3dace36e2be3bf030a65679fe82/slip44:3', 'dogecoin', null,
   'https://dogechain.info/address/', 'https://dogechain.info/tx/', false),
  ('USDC', 'crypto', 'USDC', 'USD Coin', 6, 'eip155:1/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', 'ethereum',
   'Ethereum', 'https://etherscan.io/address/', 'https://etherscan.io/tx/', false);

insert into currency_pair
  (pair, base_currency, quote_currency, buy_min, buy_max, sell_min, sell_max, spread_percentage, network_fee,
   provider_fee_percentage)
values
  ('BTC-EUR', 'BTC', 'EUR', 30, 101000, 0.0005, 2, 0.5, 1.50, 1),
  ('ETH-EUR', 'ETH', 'EUR', 30, 101000, 0.01, 50, 0.5, 0.75, 1),
  ('LTC-EUR', 'LTC', 'EUR', 30, 50000, 0.3, 1000, 0.5, 0.05, 1),
  ('XRP-EUR', 'XRP', 'EUR', 30, 50000, 15, 50000, 0.5, 0.02, 1),
  ('XLM-EUR', 'XLM', 'EUR', 30, 50000, 100, 200000, 0.5, 0.02, 1),
  ('ADA-EUR', 'ADA', 'EUR', 30, 50000, 50, 100000, 0.5, 0.20, 1),
  ('SOL-EUR', 'SOL', 'EUR', 30, 101000, 0.2, 500, 0.5, 0.05, 1),
  ('DOGE-EUR', 'DOGE', 'EUR', 30, 50000, 150, 300000, 0.5, 0.30, 1),
  ('USDC-EUR', 'USDC', 'EUR', 30, 101000, 30, 100000, 0.5, 0.75, 1);

insert into price (pair, price, observed_at) values
  ('BTC-EUR', 90000, now()), ('ETH-EUR', 3000, now()), ('LTC-EUR', 85, now()), ('XRP-EUR', 2, now()),
  ('XLM-EUR', 0.25, now()), ('ADA-EUR', 0.5, now()), ('SOL-EUR', 150, now()), ('DOGE-EUR', 0.15, now()),
  ('USDC-EUR', 0.92, now());

insert into payment_method
  (code, label, psp, kind, amount_limit, fee_fixed, fee_percentage, expiration_period_seconds, open_in_new_tab,
   uses_estimated_quote, context, position)
values
  ('creditCard', 'Credit card', 'cardprocessor', 'card', 5000, 0.25, 2.5, 900, false, false,
   '[{"type": "acceptedCards", "value": ["visa", "mastercard"]}]', 1),
  ('bankredirect1', 'Bank redirect 1', 'bankredirect', 'instant-transfer', 50000, 0.35, 0, 900, false, false, '[]', 2),
  ('localcard', 'Local card', 'cardprocessor', 'card', 10000, 0.30, 1, 900, false, false,
   '[{"type": "countries", "value": ["BE"]}]', 3),
  ('mobilepay1', 'Mobile pay 1', 'cardprocessor', 'wallet', 5000, 0.25, 2.5, 900, false, false, '[]', 4),
  ('mobilepay2', 'Mobile pay 2', 'cardprocessor', 'wallet', 5000, 0.25, 2.5, 900, false, false, '[]', 5),
  ('walletpay', 'Wallet', 'walletprovider', 'wallet', 2500, 0.35, 3.5, 900, true, false, '[]', 6),
  ('payByBank', 'Pay by bank', 'openbanking', 'instant-transfer', 50000, 0.20, 0.5, 900, true, false, '[]', 7),
  ('bankTransfer', 'Bank transfer', 'bank', 'bank-transfer', 100000, 0, 0, 604800, false, true, '[]', 8),
  ('bankredirect2', 'Bank redirect 2', 'bankredirect', 'instant-transfer', 10000, 0.35, 0.5, 900, false, false,
   '[{"type": "countries", "value": ["DE"]}]', 9),
  ('bankredirect3', 'Bank redirect 3', 'bankredirect', 'instant-transfer', 10000, 0.35, 0.5, 900, false, false,
   '[{"type": "countries", "value": ["DE", "AT", "BE"]}]', 10),
  ('bankredirect4', 'Bank redirect 4', 'bankredirect', 'instant-transfer', 10000, 0.35, 0.5, 900, false, false,
   '[{"type": "countries", "value": ["AT"]}]', 11);

insert into payment_method_preference (country, methods) values
  ('NL', '{bankredirect1,bankTransfer,creditCard}'),
  ('BE', '{localcard,bankTransfer,creditCard}'),
  ('DE', '{bankredirect2,bankredirect3,bankTransfer}'),
  ('AT', '{bankredirect4,bankredirect3,bankTransfer}'),
  ('GB', '{creditCard,payByBank,mobilepay1}'),
  ('FR', '{creditCard,bankTransfer}'),
  ('ES', '{creditCard,bankTransfer}');

insert into supported_region (region, position) values
  ('nl-nl', 1), ('nl-be', 2), ('fr-be', 3), ('fr-fr', 4), ('es-es', 5), ('de-at', 6), ('fr-ch', 7), ('de-ch', 8),
  ('fr-lu', 9), ('de-lu', 10), ('en-gb', 11), ('en-ie', 12), ('de-de', 13);

insert into nationality (code, name, id_selfie_required) values
  ('AT', 'Austria', false),
  ('BE', 'Belgium', false),
  ('BG', 'Bulgaria', false),
  ('CH', 'Switzerland', false),
  ('CY', 'Cyprus', false),
  ('CZ', 'Czechia', false),
  ('DE', 'Germany', false),
  ('DK', 'Denmark', false),
  ('EE', 'Estonia', false),
  ('ES', 'Spain', false),
  ('FI', 'Finland', false),
  ('FR', 'France', false),
  ('GB', 'United Kingdom', false),
  ('GR', 'Greece', false),
  ('HR', 'Croatia', false),
  ('HU', 'Hungary', false),
  ('IE', 'Ireland', false),
  ('IT', 'Italy', false),
  ('LT', 'Lithuania', false),
  ('LU', 'Luxembourg', false),
  ('LV', 'Latvia', false),
  ('MT', 'Malta', false),
  ('NL', 'Netherlands', false),
  ('NO', 'Norway', false),
  ('PL', 'Poland', false),
  ('PT', 'Portugal', false),
  ('RO', 'Romania', false),
  ('SE', 'Sweden', false),
  ('SI', 'Slovenia', false),
  ('SK', 'Slovakia', false),
  ('SL', 'Sierra Leone', true);
