-- optional: edges serve without it
-- Reports of identity checks, which nobody reads: they had what providers told of the person, and outlived an erasure. Their
-- digests stay, by which a repetition is known.
update connector_event set sealed_report = null
where kind = 'identity.completed' and sealed_report is not null;
