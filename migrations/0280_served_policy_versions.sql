-- True once a version answers users, whose decisions name it. So it is of all from before, and of those
-- that edges of the version before insert.
alter table policy_version add column has_served boolean not null default true;
