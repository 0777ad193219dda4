-- The form in which a connector's provider takes a card on the pay page, as an operator allows it: URL of
-- the provider's script, public key, further origins. Null: payers are led to the provider's own page, if
-- it has one. Not the connector's word: the script runs on our page.
alter table connector add column card_element jsonb;
