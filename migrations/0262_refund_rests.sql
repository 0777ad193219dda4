-- A provider may tell more of a refund that was booked by hand than is left of it: the rest is a payment of its own, under the
-- same reference.
alter table refund_confirmation add column rest numeric not null default 0 check (rest >= 0);
