-- no-transaction
-- optional: edges serve without it
-- Sessions of a user who is erased, ended or not, that name a device.
create index concurrently if not exists refresh_family_device_idx on refresh_family (client_id, user_id)
  where device is not null;
