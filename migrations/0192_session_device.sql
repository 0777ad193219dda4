-- The device of a user's session, in the words of its sign-in, as `Firefox on Linux`: known names alone, never the header.
alter table refresh_family add column device text;
alter table refresh_family add constraint refresh_family_device_check
  check (char_length(device) between 1 and 64) not valid;
