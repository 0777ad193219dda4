-- The transaction on chain that a payment's reporter has named besides its reference: an order whose coins left while it
-- waited names it once it goes on. Null for payments of before, whose reference is their transaction.
alter table payment add column transaction_id text;
