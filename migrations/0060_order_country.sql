-- The country that a purchase was quoted for, so that policies can be told how methods fare there.

alter table buy_order
  -- ISO 3166-1 alpha-2; null: the quote named none
  add column country text;
