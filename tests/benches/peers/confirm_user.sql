\set number random(1, 9007199254740991)
\set user random(1, @users@)
@claim@;
begin;
@lock@;
@insert@;
end;
