-- A command's connector is never removed, and comes from a route, which has the constraint, or is the sandbox; its
-- partner is that of an order, a user or a pool of addresses, which have it too. The checks were a third of what a
-- command costs in a purchase, and locked the one row of `connector` that all purchases have.
alter table command
  drop constraint command_connector_fkey,
  drop constraint command_client_id_fkey;
