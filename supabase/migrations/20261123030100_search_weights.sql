-- A word that few rows hold tells more than one that many hold (ts_rank does not know which those are), and one that
-- stands in thousands tells nothing beside rarer ones: it is left out, unless too little is found without it. What is
-- found, and how it is asked for, stays as it was (20261123020000_search.sql).
create or replace function public.search_found(kind text, words text, conditions text, amount integer)
returns setof jsonb
language plpgsql stable
set search_path = ''
as $$
declare
  most constant integer := 3000;  -- rows that are weighed by one search, counted for each word
  rows_in_all double precision;
  parts tsquery[];
  counts bigint[];
  looked integer;  -- how many of the words, the rarest first
  told integer;
  tests text;
begin
  select coalesce(max(reltuples), 0) into rows_in_all from pg_catalog.pg_class
  where oid = 'public.search_words'::regclass;
  if rows_in_all < 10000 then
    select count(*) into rows_in_all from public.search_words;
  end if;
  select array_agg(part order by many, part::text), array_agg(many order by many, part::text) into parts, counts
  from (
    select distinct part, (
      select count(*) from (select 1 from public.search_words as s where s.words @@ part limit most + 1) as few
    ) as many
    from jsonb_array_elements_text(words::jsonb) as word, plainto_tsquery('pg_catalog.english', word) as part
    where numnode(part) > 0
  ) as counted where many > 0;
  if parts is null then
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
  select greatest(1, count(*)) into looked from (
    select sum(many) over (order by place) as together from unnest(counts) with ordinality as c (many, place)
  ) as summed where together <= most;
  loop
    return query execute format(
      'with found as materialized ('
      ' select t.id, %4$s as score, count(*) over () as total'
      ' from public.search_words as s join public.%1$I as t on t.id = s.id'
      ' where s.kind = %1$L and s.words @@ $1%2$s order by score desc, t.id desc limit $2)'
      ' select jsonb_build_object(''row'', to_jsonb(t), ''score'', found.score, ''total'', found.total)'
      ' from found join public.%1$I as t on t.id = found.id order by found.score desc, t.id desc%3$s',
      kind, coalesce(tests, ''),
      -- With fewer than were asked for the search is made again with all words: then nothing is given yet.
      case when looked < cardinality(parts) then ' limit case when (select count(*) from found) < $2 then 0 else $2 end' else '' end,
      (select string_agg(format('%s * ts_rank(''{0, 0, 0.5, 1}'', s.words, %L, 1)',
        ln(1 + (greatest(rows_in_all - many, 0) + 0.5) / (many + 0.5)), part::text), ' + ')
       from unnest(parts[1:looked], counts[1:looked]) as p (part, many)))
    using (select string_agg(part::text, ' | ')::tsquery from unnest(parts[1:looked]) as part), amount;
    get diagnostics told = row_count;
    exit when told > 0 or looked >= cardinality(parts);
    looked := cardinality(parts);
  end loop;
end
$$;
