-- The rules by which an order was priced, so that another payment or another price has the fees that the same rules give it,
-- whatever the catalogue and the partner's policy say by then.

alter table buy_order
  -- percentages, fixed amounts and bounds, as core/src/trading/pricing/fee_rules.rs encodes them; null: confirmed by an edge,
  -- or quoted by one, that kept none
  add column fee_rules bytea;

alter table sell_order
  add column fee_rules bytea;
