"""A turn in the hands of a worker: claimed, renewed, carried on step by step, ended or given back."""

from __future__ import annotations

from shared.turns.scripts.parts import ASIDE, BURY, FENCE, LOAD, PRELUDE, SAY, script
from shared.turns.scripts.taking import TAKE

# worker lease token retry room -> {ms until more is due or -1, now, turn…}, at most `room` turns as TAKE tells them.
# Turns of one call share its epoch.
CLAIM = script(
    "claim",
    PRELUDE,
    LOAD,
    BURY,
    TAKE,
    ASIDE,
    """
local worker, lease, token, room = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[5])
local claims = P..'claims:'..worker
local found = {0, now}
local function again(session, epoch)
  local turn = redis.call('HMGET', P..'turn:'..session, 'epoch', 'tries', 'fails')
  if turn[1] ~= epoch then return end
  local given = redis.call('LRANGE', P..'given:'..session, 0, -1)
  found[#found + 1] = told(session, tonumber(epoch), tonumber(turn[2]), tonumber(turn[3] or '0'),
    given, entries(given), redis.call('LRANGE', P..'journal:'..session, 0, -1))
end
if ARGV[4] == '1' then
  local last = redis.call('LRANGE', claims, 0, -1)
  if last[1] == token then
    for i = 3, #last do again(last[i], last[2]) end
    if #found > 2 then return found end
  end
end
local due = redis.call('ZRANGEBYSCORE', P..'due', '-inf', now, 'LIMIT', 0, room)
if due[1] then
  local epoch = redis.call('INCR', P..'epoch')
  local mine = {token, epoch}
  for _, session in ipairs(due) do
    -- Two workers died with it: the third takes it alone, so that what is innocent outlives its neighbour.
    local suspect = false
    local whole, why = pcall(function()
      local was = redis.call('HMGET', P..'turn:'..session, 'tries', 'fails')
      suspect = tonumber(was[1] or '0') >= 2
      if suspect and #mine > 2 then return end
      local taken = take(session, epoch, worker, lease, was)
      if taken then mine[#mine + 1] = session; found[#found + 1] = taken end
    end)
    if not whole then aside(session, why)
    elseif suspect and #mine > 2 then break end
  end
  redis.call('DEL', claims)
  redis.call('RPUSH', claims, unpack(mine))
  redis.call('PEXPIRE', claims, lease)
end
local soonest = redis.call('ZRANGE', P..'due', 0, 0, 'WITHSCORES')[2]
found[1] = soonest and math.max(0, tonumber(soonest) - now) or -1
return found
""",
)

# session epoch lease at known ncalls call… record…
# -> -1 stale | -2 journal full | {entry fields of what came since}
STEP = script(
    "step",
    PRELUDE,
    FENCE,
    """
local s = ARGV[1]
local turn = P..'turn:'..s
if stale(s, ARGV[2]) then redis.call('INCR', P..'stale'); return -1 end
redis.call('ZADD', P..'due', 'XX', now + tonumber(ARGV[3]), s)
local ncalls = tonumber(ARGV[6])
for i = 7, 6 + ncalls do redis.call('SET', P..'call:'..ARGV[i], s, 'EX', 172800) end
local have = redis.call('LLEN', P..'journal:'..s)
if have == tonumber(ARGV[4]) then
  local size = 0
  for i = 7 + ncalls, #ARGV do size = size + #ARGV[i] end
  if size > 0 then
    if redis.call('HINCRBY', turn, 'bytes', size) > 8388608 then return -2 end
    for i = 7 + ncalls, #ARGV do redis.call('RPUSH', P..'journal:'..s, ARGV[i]) end
    redis.call('HSET', turn, 'tries', 1)  -- it got on: whoever dies next dies of something else
  end
end
local known = tonumber(ARGV[5])
local came = {}
if known < 0 then return came end
while true do
  local e = redis.call('LPOP', P..'join:'..s)
  if not e then break end
  redis.call('RPUSH', P..'given:'..s, e)
end
for _, e in ipairs(redis.call('LRANGE', P..'given:'..s, known, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r then came[#came + 1] = r[2] end
end
return came
""",
    always=True,
)

# session epoch channel output archive dead_reason drop window_ms keep idle nwindow window… seq stream events event…
# -> 1 done | -1 stale. stream, events: where live events are kept, and their channel; they are out with the end.
# idle: the seat of the worker, `<lease> <worker> <channel>`, if it holds nothing else.
FINISH = script(
    "finish",
    PRELUDE,
    LOAD,
    FENCE,
    BURY,
    SAY,
    """
local s, epoch = ARGV[1], ARGV[2]
local turn = P..'turn:'..s
if stale(s, epoch) then
  if redis.call('GET', P..'ended:'..s) == epoch then return 1 end
  redis.call('INCR', P..'stale')
  return -1
end
local said, load = say(ARGV[3], ARGV[4], ARGV[9], s), 0
for _, e in ipairs(redis.call('LRANGE', P..'given:'..s, 0, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r then
    local f = r[2]
    redis.call('SET', P..'msg:'..f[2], 'done:'..said, 'EX', 86400)
    if ARGV[6] ~= '' then bury(ARGV[6], f[2], s, f[6] or '', f[8] or table.concat(f, '\\n')) end
    redis.call('XDEL', P..'inbox', e)
    load = loaded(f[12], -1)
  end
end
if ARGV[5] ~= '' then redis.call('XADD', P..'archive', '*', 'kind', 'turn', 'session', s, 'data', ARGV[5]) end
local n = tonumber(ARGV[11])
if n > 0 then
  for i = 12, 11 + n do redis.call('RPUSH', P..'window:'..s, ARGV[i]) end
  if tonumber(ARGV[7]) > 0 then redis.call('LPOP', P..'window:'..s, ARGV[7]) end
  redis.call('PEXPIRE', P..'window:'..s, ARGV[8])
  if ARGV[12 + n] ~= '' then redis.call('SET', P..'seq:'..s, ARGV[12 + n], 'EX', 7776000) end
end
for i = 15 + n, #ARGV do
  redis.pcall('XADD', ARGV[13 + n], 'MAXLEN', '~', 2000, '*', 'data', ARGV[i])
  redis.call('PUBLISH', ARGV[14 + n], ARGV[i])
end
if ARGV[15 + n] then redis.pcall('EXPIRE', ARGV[13 + n], 3600) end
redis.call('DEL', P..'journal:'..s, P..'given:'..s, turn)
redis.call('SET', P..'ended:'..s, epoch, 'PX', 60000)
if redis.call('EXISTS', P..'mail:'..s, P..'join:'..s) > 0 then
  redis.call('ZADD', P..'due', due_at(load), s)
else redis.call('ZREM', P..'due', s) end
if ARGV[10] ~= '' then redis.call('ZADD', P..'idle', now + tonumber(string.match(ARGV[10], '^%d+')), ARGV[10]) end
return 1
""",
    always=True,
)

# session epoch channel text keep kept_for again -> 1 | -1 stale. What is said before the closing output, or of no
# turn (no session), kept for the session `kept_for`; `again`: what is told again, unless it was acknowledged.
TELL = script(
    "tell",
    PRELUDE,
    FENCE,
    SAY,
    """
if ARGV[1] ~= '' and stale(ARGV[1], ARGV[2]) then
  redis.call('INCR', P..'stale')
  return -1
end
if ARGV[7] ~= '' and redis.call('XDEL', P..'untold:'..ARGV[6], ARGV[7]) == 0 then return 1 end
say(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return 1
""",
    always=True,
)

# lease session epoch … -> the sessions that are no longer ours
BEAT = script(
    "beat",
    PRELUDE,
    FENCE,
    """
local lost = {}
for i = 2, #ARGV, 2 do
  if stale(ARGV[i], ARGV[i + 1]) then lost[#lost + 1] = ARGV[i]
  else redis.call('ZADD', P..'due', 'XX', now + tonumber(ARGV[1]), ARGV[i]) end
end
return lost
""",
    always=True,
)

# session epoch delay failed -> 1 | -1 stale. Give a turn back: after a failure with back-off, or handed over.
RELEASE = script(
    "release",
    PRELUDE,
    FENCE,
    """
local turn = P..'turn:'..ARGV[1]
if stale(ARGV[1], ARGV[2]) then return -1 end
redis.call('HDEL', turn, 'owner')
redis.call('HSET', turn, 'epoch', redis.call('INCR', P..'epoch'))
redis.call('HINCRBY', turn, 'tries', -1)
if ARGV[4] == '1' then redis.call('HINCRBY', turn, 'fails', 1) end
redis.call('ZADD', P..'due', now + tonumber(ARGV[3]), ARGV[1])
return 1
""",
    always=True,
)

# session. A worker that lost its lease and lives did not die of this turn: the delivery does not count.
ACQUIT = script(
    "acquit",
    PRELUDE,
    """
local turn = P..'turn:'..ARGV[1]
local tries = tonumber(redis.call('HGET', turn, 'tries') or '0')
if tries > 1 then redis.call('HINCRBY', turn, 'tries', -1) end
return 1
""",
    always=True,
)
