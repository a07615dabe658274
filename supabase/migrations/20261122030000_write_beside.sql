-- A row and what belongs to it (a task and the row of its history) in one transaction: through the REST
-- interface a request is one, and only a function writes to two tables.

-- Without an id: a new row. With one: the row of that id and version is changed, or nothing is written at all.
-- Either way the row comes back as it then is, and of the rows beside it those that are there already stay.
-- JSON comes as text, which everything that may stand between passes on as it is.
create function public.write_beside(kind text, row_id uuid, row_version bigint, given text, beside text)
returns setof jsonb
language plpgsql
set search_path = ''
as $$
declare
  names text;
  written jsonb;
  part record;
begin
  select string_agg(format('%I', key), ', ') into names from jsonb_object_keys(given::jsonb) as key;
  if row_id is null then
    execute format(
      'insert into public.%1$I as t (%2$s) select %2$s from jsonb_populate_record(null::public.%1$I, $1)'
      ' returning to_jsonb(t)', kind, names) into written using given::jsonb;
  else
    execute format(
      'update public.%1$I as t set (%2$s) = (select %2$s from jsonb_populate_record(null::public.%1$I, $1))'
      ' where t.id = $2 and t.version = $3 returning to_jsonb(t)', kind, names)
      into written using given::jsonb, row_id, row_version;
  end if;
  if written is null then
    return;
  end if;
  for part in select * from jsonb_to_recordset(beside::jsonb) as (kind text, rows jsonb) loop
    select string_agg(format('%I', key), ', ') into names from jsonb_object_keys(part.rows -> 0) as key;
    execute format(
      'insert into public.%1$I (%2$s) select %2$s from jsonb_populate_recordset(null::public.%1$I, $1)'
      ' on conflict (id) do nothing', part.kind, names) using part.rows;
  end loop;
  return next written;
end
$$;

revoke all on function public.write_beside from public, anon, authenticated;
grant execute on function public.write_beside to service_role;

update public.settings set value = '{"version": 2}' where scope = '@schema' and key = 'version';
