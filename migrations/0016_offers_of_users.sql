-- An offer may be for one user alone, whom a login token named.

alter table offer add column user_id uuid;
alter table offer add constraint offer_user_fk
  foreign key (client_id, user_id) references end_user (client_id, user_id);
