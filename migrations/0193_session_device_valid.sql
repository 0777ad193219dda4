-- optional: edges serve without it
alter table refresh_family validate constraint refresh_family_device_check;
