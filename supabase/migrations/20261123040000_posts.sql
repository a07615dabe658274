-- Under which ids a surface shows messages and outputs, so that a reply to one of them finds its conversation
-- (shared/store/tables/conversation.py).
create table public.posts (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  channel text not null,
  surface_id text not null,
  session_id text not null,
  message_id text not null default '',
  signed boolean not null default false
);

create index posts_created_at_idx on public.posts (created_at);
create index posts_channel_surface_id_idx on public.posts (channel, surface_id);

alter table public.posts enable row level security;
revoke all on public.posts from anon, authenticated;
grant select, insert, update, delete on public.posts to service_role;

update public.settings set value = '{"version": 7}' where scope = '@schema' and key = 'version';
