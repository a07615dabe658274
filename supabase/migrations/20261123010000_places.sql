-- Who added a repository or a workspace, and what that turn had read (shared/store/origin.py).
alter table public.repos add column origin jsonb not null default '{}';
alter table public.workspaces add column origin jsonb not null default '{}';

-- Of those of before, a person's own command is known from the audit log; all others count as marked.
update repos set origin = '{"by": "person"}' where origin = '{}' and exists (select 1 from audit_log a where a.agent = 'person' and a.decision in ('allow', 'ask_approved') and a.action in ('tool:add_repo:link ' || repos.path, 'tool:add_repo:link ' || repos.path || ' as ' || repos.name, 'tool:add_repo:clone ' || repos.url, 'tool:add_repo:clone ' || repos.url || ' as ' || repos.name)) and not exists (select 1 from audit_log a where a.agent <> 'person' and a.decision in ('allow', 'ask_approved') and a.action in ('tool:add_repo:link ' || repos.path, 'tool:add_repo:link ' || repos.path || ' as ' || repos.name, 'tool:add_repo:clone ' || repos.url, 'tool:add_repo:clone ' || repos.url || ' as ' || repos.name));
update workspaces set origin = '{"by": "person"}' where origin = '{}' and exists (select 1 from audit_log a where a.agent = 'person' and a.decision in ('allow', 'ask_approved') and a.action in ((select 'tool:add_workspace:' || p.slug || ' link ' || workspaces.path from projects p where p.id = workspaces.project_id))) and not exists (select 1 from audit_log a where a.agent <> 'person' and a.decision in ('allow', 'ask_approved') and a.action in ((select 'tool:add_workspace:' || p.slug || ' link ' || workspaces.path from projects p where p.id = workspaces.project_id)));

update public.settings set value = '{"version": 5}' where scope = '@schema' and key = 'version';
