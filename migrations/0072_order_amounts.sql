-- Orders from before the constraints on their amounts.

alter table buy_order validate constraint buy_order_amounts_check;
alter table buy_order validate constraint buy_order_identity_check;
alter table sell_order validate constraint sell_order_amounts_check;
alter table sell_order validate constraint sell_order_identity_check;
