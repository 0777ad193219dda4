-- The second person for a configuration has the roles for what it changes: whoever had the document's own role agreed to prices, too.

-- Roles of which the second person has each, besides one that the endpoint declares.
alter table approval add column approver_roles text[] not null default '{}';
