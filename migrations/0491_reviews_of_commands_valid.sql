-- Validates the reasons for a review that 0490 has added as not valid.
alter table command validate constraint command_review_check;
