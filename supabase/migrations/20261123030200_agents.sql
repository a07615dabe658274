-- An agent that was destroyed stays known; a profile says what kind of work it is for.
alter table public.agents add column destroyed_at timestamptz;
alter table public.profiles add column kind text not null default 'consult';

update public.settings set value = '{"version": 6}' where scope = '@schema' and key = 'version';
