-- Full text: what is searched by its words (shared/store/fulltext.py), kept beside its rows by triggers.

create table public.search_words (
  id uuid primary key,
  kind text not null,
  words tsvector not null
);
create index search_words_words_idx on public.search_words using gin (words);
alter table public.search_words enable row level security;
revoke all on public.search_words from anon, authenticated;
grant all on public.search_words to service_role;

-- Signs part words and have no other meaning: else an address, a path or a number would be one word.
create function public.search_part(given text, weight "char")
returns tsvector
language sql immutable
set search_path = ''
as $$
  select setweight(to_tsvector('pg_catalog.english', regexp_replace(
    left(coalesce(given, ''), 100000), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g')), weight)
$$;

-- Of the blocks of a conversation what was said, without the situation in which it was said.
create function public.search_said(content jsonb)
returns text
language sql immutable
set search_path = ''
as $$
  select string_agg(block ->> 'text', E'\n') from jsonb_array_elements(content) as block
  where block ->> 'type' = 'text' and not starts_with(block ->> 'text', '[Current date and time:')
$$;

-- The words of a row: of the column of its title (the first, or none) and of those of its text.
create function public.search_vector(given jsonb, variadic named text[])
returns tsvector
language plpgsql immutable
set search_path = ''
as $$
declare
  vector tsvector := public.search_part(given ->> named[1], 'A');
  part text;
begin
  foreach part in array named[2:] loop
    vector := vector || public.search_part(
      case jsonb_typeof(given -> part) when 'array' then public.search_said(given -> part) else given ->> part end, 'B');
  end loop;
  return vector;
end
$$;

create function public.search_keep()
returns trigger
language plpgsql
set search_path = ''
as $$
begin
  if tg_op = 'DELETE' then
    delete from public.search_words where id = old.id;
  else
    insert into public.search_words (id, kind, words)
    -- What a trigger is given is counted from zero, other arrays from one.
    values (new.id, tg_table_name, public.search_vector(to_jsonb(new), variadic array(select unnest(tg_argv))))
    on conflict (id) do update set words = excluded.words;
  end if;
  return null;
end
$$;

do $$
declare
  one record;
  named text;
begin
  for one in select * from (values
    ('notes', array['title', 'body']),
    ('project_profiles', array['', 'body']),
    ('memories', array['subject', 'body', 'context']),
    ('tasks', array['title', 'description']),
    ('task_results', array['', 'summary', 'error']),
    ('conversation_messages', array['user_name', 'content'])) as listed (kind, columns)
  loop
    select string_agg(quote_literal(name), ', ') into named from unnest(one.columns) as name;
    execute format('create trigger search_added after insert or delete on public.%I'
      ' for each row execute function public.search_keep(%s)', one.kind, named);
    execute format('create trigger search_changed after update on public.%I for each row when (%s)'
      ' execute function public.search_keep(%s)', one.kind,
      (select string_agg(format('old.%1$I is distinct from new.%1$I', name), ' or ')
       from unnest(one.columns) as name where name <> ''), named);
    execute format('insert into public.search_words (id, kind, words)'
      ' select id, %L, public.search_vector(to_jsonb(t), %s) from public.%I as t', one.kind, named, one.kind);
  end loop;
end
$$;

-- The rows of a table that hold any of the words and fit all conditions, the best first, with their score and how
-- many there are in all. A condition is {column, op, value}, as shared/store/query.py makes them.
create function public.search_found(kind text, words text, conditions text, amount integer)
returns setof jsonb
language plpgsql stable
set search_path = ''
as $$
declare
  asked tsquery;
  tests text;
begin
  select string_agg(part::text, ' | ')::tsquery into asked
  from jsonb_array_elements_text(words::jsonb) as word, plainto_tsquery('pg_catalog.english', word) as part
  where numnode(part) > 0;
  if asked is null then
    return;
  end if;
  select string_agg(
    case op
      when 'null' then format(' and t.%I is null', col)
      when 'filled' then format(' and t.%I is not null', col)
      when 'in' then format(' and t.%I in (%s)', col,
        coalesce((select string_agg(quote_literal(item), ', ') from jsonb_array_elements_text(value) as item), 'null'))
      else format(' and t.%I %s %L', col,
        case op when 'eq' then '=' when 'ne' then '<>' when 'lt' then '<' when 'le' then '<='
          when 'gt' then '>' when 'ge' then '>=' end, value #>> '{}')
    end, '') into tests
  from jsonb_to_recordset(conditions::jsonb) as c ("column" text, op text, value jsonb), lateral (select c."column") as n (col);
  return query execute format(
    'with found as materialized ('
    ' select t.id, ts_rank(''{0, 0, 0.5, 1}'', s.words, $1, 1) as score, count(*) over () as total'
    ' from public.search_words as s join public.%1$I as t on t.id = s.id'
    ' where s.kind = %1$L and s.words @@ $1%2$s order by score desc, t.id desc limit $2)'
    ' select jsonb_build_object(''row'', to_jsonb(t), ''score'', found.score, ''total'', found.total)'
    ' from found join public.%1$I as t on t.id = found.id order by found.score desc, t.id desc',
    kind, coalesce(tests, '')) using asked, amount;
end
$$;

revoke all on function public.search_part, public.search_said, public.search_vector, public.search_keep,
  public.search_found from public, anon, authenticated;
grant execute on function public.search_part, public.search_said, public.search_vector, public.search_keep,
  public.search_found to service_role;

update public.settings set value = '{"version": 5}' where scope = '@schema' and key = 'version';
