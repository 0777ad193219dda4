-- optional: edges serve without it
-- The index of 0570 holds one screening to a user.
alter table screening drop constraint screening_user_key;

-- Edges that do not know 0553 name the whole key where they screen a user anew, which is then refused.
create or replace function edge_migration_min() returns bigint language sql immutable
  return 553;
