-- optional: edges serve without it
-- Validates the purposes of tokens that 0265 has added as not valid.
alter table one_time_token validate constraint one_time_token_purpose_check;
