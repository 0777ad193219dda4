-- Validates the purposes of tokens that 0185 has added as not valid.
alter table one_time_token validate constraint one_time_token_purpose_check;
