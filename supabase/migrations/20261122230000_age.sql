-- Rows of what happened are deleted by their age, oldest first (shared/store/retention.py).
create index turn_steps_created_at_idx on public.turn_steps (created_at);

update public.settings set value = '{"version": 4}' where scope = '@schema' and key = 'version';
