-- Tokens with which the account's page opens the pages of its user's verification.
alter table one_time_token drop constraint one_time_token_purpose_check;
alter table one_time_token add constraint one_time_token_purpose_check
  check (purpose in ('login', 'reset-password', 'checks')) not valid;
