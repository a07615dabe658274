-- Who is told of what outside of the cluster, and what is on its way to them (shared/store/tables/notifications.py).
create table public.subscriptions (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  slug text not null,
  transport text not null,
  address text not null,
  shown text not null,
  user_id text not null,
  project_id uuid,
  everything boolean not null default false,
  events jsonb not null,
  enabled boolean not null default true,
  delivered_at timestamptz,
  failing_since timestamptz,
  error text not null default '',
  unique (slug)
);
create index subscriptions_user_id_idx on public.subscriptions (user_id);

create table public.deliveries (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  subscription_id uuid not null,
  event text not null,
  subject text not null default '',
  position bigint not null default 0,
  body jsonb not null,
  state text not null default 'pending',
  tries bigint not null default 0,
  due_at timestamptz not null default now(),
  status bigint,
  error text not null default '',
  ended_at timestamptz
);
create index deliveries_subscription_id_state_position_idx on public.deliveries (subscription_id, state, position);
create index deliveries_state_created_at_idx on public.deliveries (state, created_at);

alter table public.subscriptions enable row level security;
alter table public.deliveries enable row level security;
grant select, insert, update, delete on public.subscriptions, public.deliveries to service_role;
revoke all on public.subscriptions, public.deliveries from anon, authenticated;

update public.settings set value = '{"version": 7}' where scope = '@schema' and key = 'version';
