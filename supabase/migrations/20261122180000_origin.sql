-- Who made what acts later, and what that turn had read (shared/store/origin.py). A row without it is of before.
alter table public.sessions add column origin jsonb not null default '{}';
alter table public.tasks add column origin jsonb not null default '{}';
alter table public.task_results add column origin jsonb not null default '{}';
alter table public.profiles add column origin jsonb not null default '{}';
alter table public.notes add column origin jsonb not null default '{}';
alter table public.project_profiles add column origin jsonb not null default '{}';
alter table public.prompts add column origin jsonb not null default '{}';
alter table public.memories add column origin jsonb not null default '{}';
alter table public.hook_runs add column origin jsonb not null default '{}';
-- Which steps of a hook a person allowed: {by, at, digest}.
alter table public.hooks add column allowed jsonb not null default '{}', add column origin jsonb not null default '{}';

update public.settings set value = '{"version": 3}' where scope = '@schema' and key = 'version';
