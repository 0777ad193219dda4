-- The checks of amounts as expressions that Postgres reads in a fraction of the time: it reads every check of a table anew
-- for each statement, and the function in it too.
alter table buy_order
  drop constraint buy_order_amounts_check,
  drop constraint buy_order_identity_check,
  add constraint buy_order_amounts_check check (least(fiat_amount, crypto_amount, price) > 0) not valid,
  add constraint buy_order_identity_check check (
    fiat_amount - (partner_fee + provider_fee + payment_method_fee + network_fee + spread_fee + affiliate_fee)
      = round(crypto_amount * price, case
        when strpos('BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF', fiat_currency) > 0 then 0
        when strpos('BHD IQD JOD KWD LYD OMR TND', fiat_currency) > 0 then 3
        else 2 end)) not valid;
alter table sell_order
  drop constraint sell_order_amounts_check,
  drop constraint sell_order_identity_check,
  add constraint sell_order_amounts_check check (least(fiat_amount, crypto_amount, price) > 0) not valid,
  add constraint sell_order_identity_check check (
    fiat_amount + (partner_fee + provider_fee + payment_method_fee + network_fee + spread_fee + affiliate_fee)
      = round(crypto_amount * price, case
        when strpos('BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF', fiat_currency) > 0 then 0
        when strpos('BHD IQD JOD KWD LYD OMR TND', fiat_currency) > 0 then 3
        else 2 end)) not valid;
