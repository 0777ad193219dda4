-- What operators say of cards.

alter table payment_account
  -- sales can be paid out to the card at once; for cards alone
  add column fast_access boolean not null default false;
