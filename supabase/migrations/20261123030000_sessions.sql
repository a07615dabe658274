-- Conversations that people clear, save, name, put away and take up again (shared/store/tables/conversation.py).
alter table public.conversation_messages add column said_at timestamptz;

alter table public.sessions add column clear_seq bigint not null default 0;
alter table public.sessions add column talked boolean not null default false;
alter table public.sessions add column titled text not null default 'words';
alter table public.sessions add column archived boolean not null default false;
alter table public.sessions add column number bigint;

alter table public.snapshots add column tool_calls bigint not null default 0;
alter table public.snapshots add column origin jsonb not null default '{}';

update public.settings set value = '{"version": 6}' where scope = '@schema' and key = 'version';
