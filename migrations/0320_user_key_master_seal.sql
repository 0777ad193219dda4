-- The keys of users are sealed under the master key besides their tenant's, so that a rotation reaches backups: once the earlier
-- master key is destroyed, no copy of these keys from before the rotation opens. Edges of the version before cannot open what is
-- sealed so: it begins with the first rotation that is asked for, and from the first where the database has no partner.

-- Keys of users are stored so once it has its one row.
create table user_key_master_seal (
  only_row boolean primary key default true check (only_row),
  -- every key that was stored in the earlier form is committed by then, and a rotation finds it
  since timestamptz not null
);

set local rampart.all_tenants = 'on';
insert into user_key_master_seal (since)
select timestamptz 'epoch' where not exists (select from client where slug <> 'house');
