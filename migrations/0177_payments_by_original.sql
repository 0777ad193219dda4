-- A refund or a dispute has a reference of its own and names the payment that it is of, so that one payment may have
-- several. Without a name it is of the payment that has its own reference.
alter table payment add column original_reference text;
