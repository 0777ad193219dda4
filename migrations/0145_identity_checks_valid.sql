-- The rows of before obey the checks of 0144, which are those of 0070.
alter table buy_order validate constraint buy_order_amounts_check;
alter table buy_order validate constraint buy_order_identity_check;
alter table sell_order validate constraint sell_order_amounts_check;
alter table sell_order validate constraint sell_order_identity_check;
