#!lua flags=allow-oom
-- Move a turn that has done nothing yet, and all that waits behind it, into the session that it belongs to.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 session  2 epoch  3 the other session  4 owner  5 what the first message replies to  6 rows for the Store
--   7 way  8 bell
-- Returns 1 moved | 0 the other session is somebody else's | -1 stale
-- include: prelude load fence owned take give admit holds numbers threads

local session, epoch, target, owner = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ref, rows, way, bell = ARGV[5], ARGV[6], way_of(ARGV[7]), ARGV[8]
if stale(session, epoch) then
  if redis.call('GET', P..'ended:'..session) == epoch then return 1 end
  redis.call('INCR', P..'stale')
  return -1
end
if not belongs(target, owner) then return 0 end
local load, first = 0, nil
for _, list in ipairs({'given:', 'join:', 'mail:'}) do
  for _, e in ipairs(redis.call('LRANGE', P..list..session, 0, -1)) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r then
      local fields, f = r[2], {}
      for i = 1, #fields, 2 do f[fields[i]] = fields[i + 1] end
      local place = placed(target, 'reply', ref)
      local moved = redis.call('XADD', P..'inbox', '*', 'id', f.id, 'session', target, 'channel', f.channel,
        'data', f.data, 'deadline', f.deadline, 'person', f.person or '', 'found', target, 'ref', ref)
      redis.call('XDEL', P..'inbox', e)
      redis.call('RPUSH', P..(place == 'mail' and 'mail:' or 'join:')..target, moved)
      redis.call('SET', P..'at:'..f.id, target, 'EX', 86400)
      first = first or f.id
      load, ref = tonumber(redis.call('HGET', P..'load', f.person or '') or '0'), ''
    end
  end
end
redis.call('ZADD', P..'due', 'NX', due_at(load), target)
local place = redis.call('HMGET', P..'thread:'..session, 'channel', 'number')
if place[1] and place[2] and holds(place[1], place[2], session) then
  redis.call('HDEL', P..'numbers:'..place[1], place[2])
  redis.call('ZADD', P..'threads:'..place[1], 0, place[2])
end
for _, key in ipairs({'given:', 'join:', 'mail:', 'turn:', 'journal:', 'thread:', 'owner:'}) do
  redis.call('DEL', P..key..session)
end
redis.call('SET', P..'ended:'..session, epoch, 'PX', 60000)
redis.call('ZREM', P..'due', session)
went_on(target)
if way then
  local post = P..'post:'..way.trust..way.channel..' '..way.reply
  if redis.call('GET', post) == session..'\n' then redis.call('DEL', post) end
end
if way and way.surface ~= '' and way.channel ~= '' then
  posted(way.trust, way.channel, way.surface, target, first or '')
end
if rows ~= '' then redis.call('XADD', P..'archive', '*', 'kind', 'rows', 'data', rows) end
ring(bell, target)
return 1
