-- What a person was shown when leave was asked, and what must still hold when their yes is used.

alter table public.approvals add column bound jsonb not null default '{}';

update public.settings set value = '{"version": 3}' where scope = '@schema' and key = 'version';
