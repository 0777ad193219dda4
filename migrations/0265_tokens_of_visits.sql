-- Tokens of the browsers in which a secured page is open, and of the forms on it. Neither opens a page as a login token does.
alter table one_time_token drop constraint one_time_token_purpose_check;
alter table one_time_token add constraint one_time_token_purpose_check
  check (purpose in ('login', 'visit', 'form', 'reset-password', 'checks')) not valid;
