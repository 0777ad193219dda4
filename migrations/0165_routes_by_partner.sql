-- optional: edges serve without it
-- A confirm finds the routes of its partner, and those for every live one, however many others have
-- routes of their own.
create index route_partner_idx on route (partner);
