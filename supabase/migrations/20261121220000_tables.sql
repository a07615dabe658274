-- PromptDock's tables. The same schema as shared/store/records.py; tests/store/test_schema.py compares them.
-- Only the service key reads and writes: row level security is on, and there is no policy.
-- Logs have no foreign keys, since their rows may arrive in any order.

create table public.projects (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  slug text not null,
  name text not null,
  status text not null default 'ACTIVE',
  description text not null default '',
  credit_weight double precision not null default 1.0,
  max_concurrent_agents bigint not null default 2,
  budget double precision,
  default_branch text not null default 'main',
  default_profile_id uuid,
  workspace text,
  unique (slug)
);

create table public.repos (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  project_id uuid not null references public.projects (id) on delete cascade,
  name text not null,
  kind text not null default 'both',
  url text,
  path text,
  home text,
  default_branch text not null default 'main',
  push_tasks boolean not null default false,
  unique (project_id, name)
);

create table public.workspaces (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  project_id uuid not null references public.projects (id) on delete cascade,
  repo_id uuid,
  name text not null,
  source text not null default 'clone',
  path text not null,
  home text,
  branch text,
  agent text,
  task_id uuid,
  epoch bigint not null default 0,
  lease_until timestamptz,
  unique (project_id, name)
);

create table public.channels (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  surface text not null,
  channel_id text not null,
  name text not null default '',
  project_id uuid,
  note text,
  agent text,
  unique (surface, channel_id)
);

create table public.tasks (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  slug text not null,
  project_id uuid not null references public.projects (id) on delete cascade,
  title text not null,
  description text not null default '',
  acceptance jsonb not null default '[]',
  status text not null default 'READY',
  priority bigint not null default 100,
  type text,
  assignee text,
  parent_id uuid,
  profile_id uuid,
  repo_id uuid,
  workspace_id uuid,
  branch text,
  base_commit text,
  pr_url text,
  session_id text,
  user_id text,
  request_id text,
  attempts bigint not null default 0,
  max_retries bigint not null default 3,
  requires_approval boolean not null default false,
  verification text,
  budget double precision,
  plan jsonb not null default '{}',
  attachments jsonb not null default '[]',
  feedback text not null default '',
  question text not null default '',
  error text not null default '',
  owner text,
  epoch bigint not null default 0,
  lease_until timestamptz,
  resume_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  archived boolean not null default false,
  unique (slug)
);

create table public.task_events (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  task_id uuid not null,
  project_id uuid,
  event text not null,
  from_status text,
  to_status text,
  actor text not null default '',
  epoch bigint not null default 0,
  detail jsonb not null default '{}'
);

create table public.task_dependencies (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  task_id uuid not null references public.tasks (id) on delete cascade,
  depends_on_id uuid not null references public.tasks (id) on delete cascade,
  unique (task_id, depends_on_id)
);

create table public.task_results (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  task_id uuid not null,
  attempt bigint not null default 1,
  epoch bigint not null default 0,
  agent text not null default '',
  summary text not null default '',
  branch text,
  base_commit text,
  commits jsonb not null default '[]',
  files_changed jsonb not null default '[]',
  diff_stat text not null default '',
  commands jsonb not null default '[]',
  tests jsonb not null default '{}',
  tokens_used bigint not null default 0,
  cost double precision not null default 0.0,
  verified text not null default 'unverified',
  error text not null default '',
  receipt jsonb not null default '{}'
);

create table public.messages (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  message_id text,
  from_agent text not null,
  to_agent text not null,
  type text not null,
  payload jsonb not null default '{}',
  channel text not null default '',
  session_id text,
  turn_id text,
  request_id text,
  user_id text
);

create table public.conversation_messages (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  session_id text not null,
  seq bigint not null,
  thread_id text,
  turn_id text,
  role text not null,
  content jsonb not null default '[]',
  tool_calls jsonb not null default '[]',
  tool_call_id text,
  user_id text,
  user_name text,
  source text,
  source_message_id text,
  unique (session_id, seq)
);

create table public.sessions (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  key text not null,
  user_id text,
  agent text not null default 'chatter',
  project_id uuid,
  channel text,
  active_project uuid,
  clear_at timestamptz,
  title text not null default '',
  last_active_at timestamptz not null default now(),
  unique (key)
);

create table public.snapshots (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  session_id text not null,
  agent text not null default 'chatter',
  kind text not null default 'saved',
  user_id text,
  description text not null default '',
  summary text not null default '',
  message_count bigint not null default 0,
  first_seq bigint,
  last_seq bigint,
  content jsonb not null default '[]'
);

create table public.turns (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  turn_id text not null,
  agent text not null,
  session_id text,
  request_id text,
  user_id text,
  task_id uuid,
  state text not null default 'running',
  epoch bigint not null default 0,
  tries bigint not null default 1,
  model text,
  error text,
  started_at timestamptz not null default now(),
  ended_at timestamptz
);

create table public.turn_steps (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  turn_id text not null,
  session_id text,
  agent text not null default '',
  number bigint not null,
  kind text not null,
  description text not null default '',
  detail jsonb not null default '{}',
  is_error boolean not null default false,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  ms bigint
);

create table public.agents (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  name text not null,
  kind text not null default 'builtin',
  state text not null default 'offline',
  profile_id uuid,
  project_id uuid,
  task_id uuid,
  home text,
  workspace text,
  heartbeat_at timestamptz,
  unique (name)
);

create table public.profiles (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  slug text not null,
  name text not null,
  description text not null default '',
  sections jsonb not null default '[]',
  docs text not null default '',
  model text,
  temperature double precision,
  max_tokens bigint,
  tools jsonb not null default '[]',
  categories jsonb not null default '[]',
  permission_profile text not null default 'standard',
  permissions jsonb not null default '{}',
  mcp_servers jsonb not null default '{}',
  install jsonb not null default '{}',
  limits jsonb not null default '{}',
  budget double precision,
  unique (slug)
);

create table public.approvals (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  approval_id text not null,
  agent text not null,
  session_id text,
  turn_id text,
  call_id text,
  user_id text,
  action text not null,
  arguments jsonb not null default '{}',
  arguments_hash text not null default '',
  why text not null default '',
  state text not null default 'pending',
  decided_by text,
  reason text not null default '',
  pattern text,
  scope text,
  expires_at timestamptz,
  decided_at timestamptz
);

create table public.audit_log (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  agent text not null,
  action text not null,
  decision text not null,
  person text,
  profile text,
  session_id text,
  turn_id text,
  task_id uuid,
  detail jsonb not null default '{}'
);

create table public.notes (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  project_id uuid not null references public.projects (id) on delete cascade,
  slug text not null,
  title text not null,
  body text not null default '',
  unique (project_id, slug)
);

create table public.project_profiles (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  project_id uuid not null references public.projects (id) on delete cascade,
  body text not null default '',
  unique (project_id)
);

create table public.prompts (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  project_id uuid not null references public.projects (id) on delete cascade,
  name text not null,
  category text not null default '',
  tags jsonb not null default '[]',
  description text not null default '',
  variables jsonb not null default '[]',
  body text not null default '',
  unique (project_id, name)
);

create table public.memories (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  kind text not null,
  scope text not null default 'project',
  project_id uuid,
  session_id text,
  user_id text,
  subject text not null default '',
  body text not null,
  context text not null default '',
  confidence double precision not null default 0.7,
  salience double precision not null default 0.5,
  uses bigint not null default 0,
  successes bigint not null default 0,
  valid_from timestamptz not null default now(),
  valid_to timestamptz,
  superseded_by uuid,
  used_at timestamptz,
  source text,
  detail jsonb not null default '{}',
  embedding jsonb,
  archived boolean not null default false
);

create table public.hooks (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  slug text not null,
  project_id uuid not null references public.projects (id) on delete cascade,
  name text not null,
  enabled boolean not null default true,
  trigger jsonb not null,
  context_steps jsonb not null default '[]',
  prompt_template text not null,
  cooldown_seconds bigint not null default 3600,
  llm_config jsonb not null default '{}',
  max_tokens_per_run bigint,
  daily_cap bigint,
  agent text,
  profile_id uuid,
  launched_at timestamptz,
  unique (slug)
);

create table public.hook_runs (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  hook_id uuid not null,
  project_id uuid,
  state text not null default 'running',
  trigger text not null default '',
  event jsonb not null default '{}',
  depth bigint not null default 0,
  steps jsonb not null default '[]',
  prompt text not null default '',
  response text not null default '',
  session_id text,
  turn_id text,
  tokens_used bigint not null default 0,
  error text not null default '',
  started_at timestamptz not null default now(),
  ended_at timestamptz
);

create table public.token_usage (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  agent text not null,
  session_id text,
  turn_id text,
  task_id uuid,
  project_id uuid,
  provider text not null default '',
  model text not null,
  input bigint not null default 0,
  output bigint not null default 0,
  cache_read bigint not null default 0,
  cache_write bigint not null default 0,
  cost double precision not null default 0.0,
  demo boolean not null default false
);

create table public.settings (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version bigint not null default 1,
  scope text not null,
  key text not null,
  value jsonb not null default '{}',
  unique (scope, key)
);

create table public.logs (
  id uuid primary key default gen_random_uuid(),
  created_at timestamptz not null default now(),
  agent text not null,
  level text not null default 'info',
  message text not null,
  metadata jsonb not null default '{}',
  session_id text,
  turn_id text
);

create index channels_project_id_idx on public.channels (project_id);
create index tasks_project_id_status_idx on public.tasks (project_id, status);
create index tasks_status_priority_created_at_idx on public.tasks (status, priority, created_at);
create index tasks_assignee_status_idx on public.tasks (assignee, status);
create index tasks_parent_id_idx on public.tasks (parent_id);
create index task_events_task_id_created_at_idx on public.task_events (task_id, created_at);
create index task_events_created_at_idx on public.task_events (created_at);
create index task_dependencies_depends_on_id_idx on public.task_dependencies (depends_on_id);
create index task_results_task_id_created_at_idx on public.task_results (task_id, created_at);
create index messages_created_at_idx on public.messages (created_at);
create index messages_session_id_created_at_idx on public.messages (session_id, created_at);
create index messages_request_id_idx on public.messages (request_id);
create index messages_message_id_idx on public.messages (message_id);
create index conversation_messages_session_id_created_at_idx on public.conversation_messages (session_id, created_at);
create index conversation_messages_source_message_id_idx on public.conversation_messages (source_message_id);
create index sessions_user_id_last_active_at_idx on public.sessions (user_id, last_active_at);
create index sessions_last_active_at_idx on public.sessions (last_active_at);
create index snapshots_session_id_created_at_idx on public.snapshots (session_id, created_at);
create index turns_session_id_created_at_idx on public.turns (session_id, created_at);
create index turns_turn_id_idx on public.turns (turn_id);
create index turns_task_id_idx on public.turns (task_id);
create index turns_created_at_idx on public.turns (created_at);
create index turn_steps_turn_id_number_idx on public.turn_steps (turn_id, number);
create index turn_steps_session_id_created_at_idx on public.turn_steps (session_id, created_at);
create index approvals_state_created_at_idx on public.approvals (state, created_at);
create index approvals_session_id_created_at_idx on public.approvals (session_id, created_at);
create index approvals_approval_id_idx on public.approvals (approval_id);
create index audit_log_created_at_idx on public.audit_log (created_at);
create index audit_log_agent_created_at_idx on public.audit_log (agent, created_at);
create index audit_log_action_idx on public.audit_log (action);
create index memories_project_id_kind_idx on public.memories (project_id, kind);
create index memories_session_id_idx on public.memories (session_id);
create index memories_kind_created_at_idx on public.memories (kind, created_at);
create index hooks_project_id_idx on public.hooks (project_id);
create index hooks_enabled_idx on public.hooks (enabled);
create index hook_runs_hook_id_created_at_idx on public.hook_runs (hook_id, created_at);
create index hook_runs_state_idx on public.hook_runs (state);
create index token_usage_created_at_idx on public.token_usage (created_at);
create index token_usage_session_id_created_at_idx on public.token_usage (session_id, created_at);
create index token_usage_task_id_idx on public.token_usage (task_id);
create index token_usage_project_id_created_at_idx on public.token_usage (project_id, created_at);
create index logs_created_at_idx on public.logs (created_at);
create index logs_agent_created_at_idx on public.logs (agent, created_at);

alter table public.projects enable row level security;
alter table public.repos enable row level security;
alter table public.workspaces enable row level security;
alter table public.channels enable row level security;
alter table public.tasks enable row level security;
alter table public.task_events enable row level security;
alter table public.task_dependencies enable row level security;
alter table public.task_results enable row level security;
alter table public.messages enable row level security;
alter table public.conversation_messages enable row level security;
alter table public.sessions enable row level security;
alter table public.snapshots enable row level security;
alter table public.turns enable row level security;
alter table public.turn_steps enable row level security;
alter table public.agents enable row level security;
alter table public.profiles enable row level security;
alter table public.approvals enable row level security;
alter table public.audit_log enable row level security;
alter table public.notes enable row level security;
alter table public.project_profiles enable row level security;
alter table public.prompts enable row level security;
alter table public.memories enable row level security;
alter table public.hooks enable row level security;
alter table public.hook_runs enable row level security;
alter table public.token_usage enable row level security;
alter table public.settings enable row level security;
alter table public.logs enable row level security;

-- Newer projects give no rights on new tables by themselves.
grant usage on schema public to service_role;
grant select, insert, update, delete on
  public.projects,
  public.repos,
  public.workspaces,
  public.channels,
  public.tasks,
  public.task_events,
  public.task_dependencies,
  public.task_results,
  public.messages,
  public.conversation_messages,
  public.sessions,
  public.snapshots,
  public.turns,
  public.turn_steps,
  public.agents,
  public.profiles,
  public.approvals,
  public.audit_log,
  public.notes,
  public.project_profiles,
  public.prompts,
  public.memories,
  public.hooks,
  public.hook_runs,
  public.token_usage,
  public.settings,
  public.logs
to service_role;
revoke all on
  public.projects,
  public.repos,
  public.workspaces,
  public.channels,
  public.tasks,
  public.task_events,
  public.task_dependencies,
  public.task_results,
  public.messages,
  public.conversation_messages,
  public.sessions,
  public.snapshots,
  public.turns,
  public.turn_steps,
  public.agents,
  public.profiles,
  public.approvals,
  public.audit_log,
  public.notes,
  public.project_profiles,
  public.prompts,
  public.memories,
  public.hooks,
  public.hook_runs,
  public.token_usage,
  public.settings,
  public.logs
from anon, authenticated;

-- Where everything begins. A project's id follows from its slug (project_key in shared/store/records.py).
insert into public.projects (id, slug, name) values ('3779d2d8-0912-5c27-9124-b8d4225bb4ec', 'default', 'Default');

-- The schema's version, which a program compares with its own; every later migration raises it.
insert into public.settings (scope, key, value) values ('@schema', 'version', '{"version": 1}');
