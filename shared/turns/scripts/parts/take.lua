-- A turn comes into the hands of a worker, which is told {session, epoch, tries, fails, {entry fields…}, journal,
-- window, seq, untold, channel, number in it, what it seeks, '1' where there are threads}. untold: {id, text…} of the
-- outputs from before the message that opens the turn, which nobody was shown.
local function entries(given)
  local found = {}
  for _, e in ipairs(given) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r then found[#found + 1] = r[2] end
  end
  return found
end
local function told(session, epoch, tries, fails, given, messages, journal)
  local window, seq, untold = {}, '', {}
  local turn = {session, epoch, tries, fails, messages, journal, window, seq, untold, '', '', '', '0'}
  local thread, channels = P..'thread:'..session, P..'channels'
  -- Of most turns there is nothing of all that, and one look tells it.
  local window_key, seq_key, untold_key = P..'window:'..session, P..'seq:'..session, P..'untold:'..session
  local there = redis.call('EXISTS', window_key, seq_key, untold_key, thread, channels)
  if there == 0 then return turn end
  local placed = redis.call('EXISTS', thread, channels)
  if there > placed then
    turn[7] = redis.call('LRANGE', window_key, 0, -1)
    turn[8] = redis.call('GET', seq_key) or ''
    for _, r in ipairs(given[1] and redis.call('XRANGE', untold_key, '-', given[1]) or {}) do
      untold[#untold + 1], untold[#untold + 2] = r[1], r[2][2]
    end
  end
  if placed > 0 then
    local place = redis.call('HMGET', thread, 'channel', 'number', 'seeks')
    turn[10], turn[11], turn[12] = place[1] or '', place[2] or '', place[3] or ''
    turn[13] = tostring(redis.call('EXISTS', channels))
  end
  return turn
end
-- was: {tries, fails} of the turn, if it has begun
local function lend(session, epoch, worker, lease, was, given, messages, journal)
  local tries = tonumber(was[1] or '0') + 1
  local root = messages[1] and messages[1][2] or session
  redis.call('HSET', P..'turn:'..session, 'epoch', epoch, 'owner', worker, 'tries', tries, 'root', root)
  redis.call('ZADD', P..'due', now + lease, session)
  return told(session, epoch, tries, tonumber(was[2] or '0'), given, messages, journal)
end
local function take(session, epoch, worker, lease, was)
  local given = P..'given:'..session
  local list = was[1] and redis.call('LRANGE', given, 0, -1) or {}
  local journal = list[1] and redis.call('LRANGE', P..'journal:'..session, 0, -1) or {}
  if not list[1] then
    local e = redis.call('LMOVE', P..'mail:'..session, given, 'LEFT', 'RIGHT')
      or redis.call('LMOVE', P..'join:'..session, given, 'LEFT', 'RIGHT')
    if not e then redis.call('ZREM', P..'due', session); return nil end
    list[1] = e
  end
  while true do
    local e = redis.call('LMOVE', P..'join:'..session, given, 'LEFT', 'RIGHT')
    if not e then break end
    list[#list + 1] = e
  end
  return lend(session, epoch, worker, lease, was, list, entries(list), journal)
end
