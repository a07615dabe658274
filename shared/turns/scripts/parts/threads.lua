-- How a message finds its session in a channel. `way` is what turns/threads.py writes, one item a line. how: '' the
-- message names it | 'number' of a thread | 'reply' to something | 'new'. Needs owned and numbers.
local POSTED = 172800
local function way_of(text)
  if text == '' then return nil end
  local items = {}
  for item in string.gmatch(text..'\n', '(.-)\n') do items[#items + 1] = item end
  return {how = items[1], trust = items[2], channel = items[3], number = items[4], reply = items[5],
    surface = items[6], opens = items[7] == '1', words = items[8],
    fresh = items[9]}
end
-- Under which ids a surface shows something of a session.
local function posted(trust, channel, ids, session, ref)
  for id in string.gmatch(ids, '%S+') do
    redis.call('SET', P..'post:'..trust..channel..' '..id, session..'\n'..ref, 'EX', POSTED)
  end
  redis.call('XADD', P..'archive', '*', 'kind', 'posted', 'trust', trust, 'channel', channel,
    'session', session, 'id', ref, 'data', ids)
end
-- What a reply means: the session, and what of it, by an id of ours; an output is called after its turn.
local function replied(way)
  local post = redis.call('GET', P..'post:'..way.trust..way.channel..' '..way.reply)
  if post then return string.match(post, '^(.-)\n(.*)$') end
  local name = way.reply
  while name do
    local session = redis.call('GET', P..'at:'..name)
    if session then return session, way.reply end
    name = string.match(name, '^(.+)%.[^.]*$')
  end
end
-- The session of a message, and what it replies to; no session where there is none of that number. What nobody knows
-- here, and what is another person's, begins a thread of its own, which is to look for it in the Store.
local function found_by(way, named, owner)
  local session, ref
  if way.reply ~= '' then session, ref = replied(way) end
  if way.how == '' then return named, ref or way.reply end
  if way.how == 'number' then
    session = redis.call('HGET', P..'numbers:'..way.channel, way.number)
    local held = redis.call('ZSCORE', P..'threads:'..way.channel, way.number)
    if not session or tonumber(held or '0') < now and not redis.call('ZSCORE', P..'due', session) then return nil end
    return session, ref or way.reply
  end
  if session and redis.call('EXISTS', P..'owner:'..session) == 1 and belongs(session, owner) then
    return session, ref
  end
  if not way.opens then return nil end
  session = string.format('thread:%.0f-', now)..way.fresh
  if way.how == 'reply' then
    redis.call('HSET', P..'thread:'..session, 'seeks', way.reply)
    -- Another reply to the same goes after this one, wherever that goes.
    redis.call('SET', P..'post:'..way.trust..way.channel..' '..way.reply, session..'\n', 'NX', 'EX', POSTED)
  end
  if way.channel == '' then redis.call('EXPIRE', P..'thread:'..session, 7776000)
  else numbered(way.channel, session) end
  return session, ''
end
-- Where a message goes: {1, session, kind, reply, the session if it was found} | {-3} it is somebody else's | {-4} there
-- is none. A stop or an amendment of what nobody knows is told so, apart from everything.
local ENDS = {front = 1, join = 1, aim = 1, add = 1, kill = 1}
local function directed(way, kind, id, asked, reply, owner)
  local session, ref = found_by(way, asked, owner)
  if not session and not ENDS[kind] then return -4 end
  if not session then return 1, 'apart:'..id, 'mail', reply end
  local found = way.how ~= '' and session or nil
  if found and kind ~= 'word' and not belongs(session, owner) then return -3 end
  if ref and ref ~= '' and kind ~= 'aim' and kind ~= 'add' then reply = ref end
  return 1, session, kind, reply, found
end
-- What a message that was accepted leaves: where its session is held, and by which ids it is found.
local function noted(way, session, id)
  local thread = P..'thread:'..session
  if way.opens then
    went_on(session)
    redis.call('HDEL', thread, 'killed')
    if way.channel ~= '' and redis.call('HSETNX', thread, 'channel', way.channel) == 1 then
      redis.call('EXPIRE', thread, 7776000)
    end
    if way.words ~= '' then redis.call('HSETNX', thread, 'words', way.words) end
  end
  if way.surface ~= '' and way.channel ~= '' then posted(way.trust, way.channel, way.surface, session, id) end
end
local function ring(bell, session)
  redis.call('PUBLISH', bell, '{"look": "'..string.gsub(string.gsub(session, '\\', '\\\\'), '"', '\\"')..'"}')
end
-- A kill ends what runs, and what waits is answered with it. `live`: something did.
local function killed(session, bell, live)
  while redis.call('LMOVE', P..'mail:'..session, P..'join:'..session, 'LEFT', 'RIGHT') do end
  local thread = P..'thread:'..session
  if live and redis.call('EXISTS', thread) == 1 then redis.call('HSET', thread, 'killed', now) end
  redis.call('PUBLISH', bell, session)
end
