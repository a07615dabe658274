-- What is made in this schema from now on is for the service alone, as all of ours is.
--
-- Supabase grants each new table, sequence and function of the schema to the keys that anybody may have, so that
-- one which a later migration forgets to take away would be open. No version is raised: no program depends on it.
-- Whoever shares the project with an application of their own grants that application's tables to it by name.

alter default privileges in schema public revoke all on tables from anon, authenticated;
alter default privileges in schema public revoke all on sequences from anon, authenticated;
alter default privileges in schema public revoke all on functions from anon, authenticated;

-- And of what is there already, whoever made it later than the first migration listed it.
revoke all on all sequences in schema public from anon, authenticated;
