-- References under which connectors have told of refunds. Two reports of one reference may name different orders, each of which
-- is locked alone: one confirmed a refund that was booked by hand, and the other one became a payment at the same time. The
-- row is made before either is decided, so that the second report waits for the first.
create table refund_reference (
  connector text not null check (connector ~ '^[a-z][a-z0-9-]{0,62}$'),
  provider_reference text not null check (char_length(provider_reference) between 1 and 255),
  primary key (connector, provider_reference)
);

create trigger refund_reference_append_only before update or delete or truncate on refund_reference
  for each statement execute function refuse_change();
