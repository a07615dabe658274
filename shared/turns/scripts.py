"""The Lua of one agent's desk. KEYS[1] is its prefix `pd:<namespace>:{<agent>}:`; all keys share its slot.

Each script may be sent again when its reply was lost: it recognises what it has done already. Time is the
server's. `#!lua` makes a server refuse a script that leaves its slot; what frees memory may run when memory
is full.
"""

from __future__ import annotations

from shared import faults
from shared.bus.base import Script

_PRELUDE = """
local P = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""

# The fence: only the newest claim of a session may change anything.
_FENCE = """
local function stale(session, epoch)
  return redis.call('HGET', P..'turn:'..session, 'epoch') ~= epoch
end
"""
if faults.without("fencing"):
    _FENCE = "local function stale(session, epoch) return false end\n"

# A message is accepted: known by its id, in the inbox, in its session's mail (or among what may join the turn
# that runs), its session due, and on its way to the Store. A negative deadline counts from now.
_ADMIT = """
local function admit(id, session, channel, data, deadline, place)
  local was = redis.call('SET', P..'msg:'..id, 'accepted', 'NX', 'GET')
  if was then return false, was end
  local ends = tonumber(deadline)
  if ends < 0 then ends = now - ends end
  local e = redis.call('XADD', P..'inbox', '*', 'id', id, 'session', session, 'channel', channel,
    'data', data, 'deadline', ends)
  local list = 'mail:'
  if place ~= 'mail' then list = 'join:' end
  if place == 'front' then redis.call('LPUSH', P..list..session, e)
  else redis.call('RPUSH', P..list..session, e) end
  redis.call('ZADD', P..'due', 'NX', now, session)
  redis.call('XADD', P..'archive', '*', 'kind', 'message', 'channel', channel, 'session', session,
    'id', id, 'data', data)
  return e, 'accepted'
end
-- A reply to something of the turn that runs joins it; else it waits like any other message.
local function placed(session, place, reply)
  if place ~= 'reply' then return place end
  local root = redis.call('HGET', P..'turn:'..session, 'root')
  if root and (reply == root or string.sub(reply, 1, #root + 1) == root..'.') then return 'join' end
  return 'mail'
end
-- A plain yes or no answers the question that is open in its session: in a session of its own, since that one
-- may be what waits for it. Where no question is open it is a message like any other.
local function routed(session, place, reply)
  if place ~= 'word' then return session, placed(session, place, reply) end
  if redis.call('EXISTS', P..'asks:'..session) == 1 then return 'asks:'..session, 'mail' end
  return session, placed(session, reply ~= '' and 'reply' or 'mail', reply)
end
"""

_BURY = """
local function bury(reason, id, session, channel, data)
  redis.call('XADD', P..'dead', 'MAXLEN', '~', 10000, '*', 'reason', reason, 'id', id,
    'session', session, 'channel', channel, 'data', data)
  redis.call('XADD', P..'archive', '*', 'kind', 'dead', 'reason', reason, 'channel', channel,
    'session', session, 'id', id, 'data', data)
end
"""

_SAY = """
local function say(channel, text)
  if text == '' then return '' end
  local e = redis.call('XADD', P..'out', 'MINID', '~', now - 86400000, '*', 'data', text)
  redis.call('PUBLISH', channel, text)
  return e
end
"""


def _script(name: str, *parts: str, always: bool = False) -> Script:
    header = "#!lua flags=allow-oom\n" if always else "#!lua\n"
    return Script(name, header + "".join(parts))


# channel id session deadline text limit place reply -> {1, waiting} | {0, state} known | {-1, waiting} busy
POST = _script(
    "post",
    _PRELUDE,
    _ADMIT,
    """
local waiting = redis.call('XLEN', P..'inbox')
local full = redis.call('GET', P..'full')
local opens = ARGV[7] == 'mail' or ARGV[7] == 'reply' or ARGV[7] == 'word'
if opens and (full or waiting >= tonumber(ARGV[6])) then
  local was = redis.call('GET', P..'msg:'..ARGV[2])
  if was then return {0, was} end
  return {-1, waiting}
end
local session, place = routed(ARGV[3], ARGV[7], ARGV[8])
local e, was = admit(ARGV[2], session, ARGV[1], ARGV[5], ARGV[4], place)
if not e then return {0, was} end
redis.call('PUBLISH', ARGV[1], ARGV[5])
return {1, waiting}
""",
)

# channel -> k. An ear opens a numbering; the marker travels in the order of the channels themselves.
JOIN = _script(
    "join",
    _PRELUDE,
    """
local k = redis.call('INCR', P..'ear')
redis.call('HSET', P..'ears', k, 0, 'wait', 0)
redis.call('HDEL', P..'ears', k - 64)
if redis.call('PUBLISH', ARGV[1], k) <= 1 then redis.call('HSET', P..'ears', 'closed', k - 1)
else redis.call('HSET', P..'ears', 'wait', now + 3000) end
return k
""",
)

# k -> 0 | -2 older ears still hand in. Whoever heard numbering k to its end says so, after its last message.
CLOSE = _script(
    "close",
    _PRELUDE,
    """
local w = redis.call('HMGET', P..'ears', 'closed', 'wait')
local closed = tonumber(w[1] or '0')
-- An ear that heard nothing in k must not overtake those that still hand in what they heard before it.
if closed < tonumber(ARGV[1]) - 1 and now < tonumber(w[2] or '0') then return -2 end
if tonumber(ARGV[1]) > closed then redis.call('HSET', P..'ears', 'closed', ARGV[1]) end
return 0
""",
)

# k i kind id session channel data deadline reply limit output_channel refusal reason
# kind: mail | reply | word | join | front | answer | dead.
# -> 1 taken, 2 buried, 0 known, -1 numbering too old (others had it), -2 older ears still hand in
HEAR = _script(
    "hear",
    _PRELUDE,
    _ADMIT,
    _BURY,
    _SAY,
    """
local k, i, kind = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local had = redis.call('HGET', P..'ears', k)
if not had then return -1 end
if i <= tonumber(had) then return 0 end
local w = redis.call('HMGET', P..'ears', 'closed', 'wait')
if tonumber(w[1] or '0') < tonumber(k) - 1 and now < tonumber(w[2] or '0') then return -2 end
redis.call('HSET', P..'ears', k, i)
local id, session, channel, data = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if id == '' then id = 'p:'..k..':'..i end
local reason = ARGV[13]
local place = kind
if kind == 'answer' then
  local asked = redis.call('GET', P..'call:'..session)
  if asked then id = 'answer:'..session; session = asked; place = 'join'
  else kind = 'dead'; reason = 'unknown_request' end
elseif kind ~= 'dead' and redis.call('XLEN', P..'inbox') >= tonumber(ARGV[10]) then
  kind = 'dead'; reason = 'busy'
end
if kind == 'dead' then
  bury(reason, id, session, channel, data)
  say(ARGV[11], ARGV[12])
  return 2
end
session, place = routed(session, place, ARGV[9])
if not admit(id, session, channel, data, ARGV[8], place) then return 0 end
return 1
""",
)

# worker lease token retry room -> {ms until more is due or -1, now, turn…}, at most `room` turns, each
# {session, epoch, tries, fails, {entry fields…}, journal, window, seq}. Turns of one call share its epoch.
CLAIM = _script(
    "claim",
    _PRELUDE,
    """
local worker, lease, token, room = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[5])
local claims = P..'claims:'..worker
local found = {0, now}
local function add(session, epoch, tries, fails, given, journal)
  local entries = {}
  for _, e in ipairs(given) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r then entries[#entries + 1] = r[2] end
  end
  found[#found + 1] = {session, epoch, tries, fails, entries, journal,
    redis.call('LRANGE', P..'window:'..session, 0, -1), redis.call('GET', P..'seq:'..session) or ''}
  return entries
end
local function again(session, epoch)
  local turn = redis.call('HMGET', P..'turn:'..session, 'epoch', 'tries', 'fails')
  if turn[1] ~= epoch then return end
  add(session, tonumber(epoch), tonumber(turn[2]), tonumber(turn[3] or '0'),
    redis.call('LRANGE', P..'given:'..session, 0, -1), redis.call('LRANGE', P..'journal:'..session, 0, -1))
end
if ARGV[4] == '1' then
  local last = redis.call('LRANGE', claims, 0, -1)
  if last[1] == token then
    for i = 3, #last do again(last[i], last[2]) end
    if #found > 2 then return found end
  end
end
local function take(session, epoch)
  local turn, given = P..'turn:'..session, P..'given:'..session
  local list = redis.call('LRANGE', given, 0, -1)
  local fresh = #list == 0
  if fresh then
    local e = redis.call('LMOVE', P..'mail:'..session, given, 'LEFT', 'RIGHT')
      or redis.call('LMOVE', P..'join:'..session, given, 'LEFT', 'RIGHT')
    if not e then redis.call('ZREM', P..'due', session); redis.call('DEL', turn); return false end
    list[1] = e
  end
  while true do
    local e = redis.call('LMOVE', P..'join:'..session, given, 'LEFT', 'RIGHT')
    if not e then break end
    list[#list + 1] = e
  end
  local was = redis.call('HMGET', turn, 'tries', 'fails', 'root')
  local tries = tonumber(was[1] or '0') + 1
  local journal = {}
  if not fresh then journal = redis.call('LRANGE', P..'journal:'..session, 0, -1) end
  local entries = add(session, epoch, tries, tonumber(was[2] or '0'), list, journal)
  local root = was[3] or (entries[1] and entries[1][2]) or session
  redis.call('HSET', turn, 'epoch', epoch, 'owner', worker, 'tries', tries, 'root', root)
  redis.call('ZADD', P..'due', now + lease, session)
  return true
end
local due = redis.call('ZRANGEBYSCORE', P..'due', '-inf', now, 'LIMIT', 0, room)
if due[1] then
  local epoch = redis.call('INCR', P..'epoch')
  local mine = {token, epoch}
  for _, session in ipairs(due) do
    -- Two workers died with it: the third takes it alone, so that what is innocent outlives its neighbour.
    local suspect = tonumber(redis.call('HGET', P..'turn:'..session, 'tries') or '0') >= 2
    if not suspect or #mine == 2 then
      if take(session, epoch) then mine[#mine + 1] = session end
      if suspect then break end
    end
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
STEP = _script(
    "step",
    _PRELUDE,
    _FENCE,
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

# session epoch channel output archive dead_reason drop window_ms nwindow window… seq?
# -> 1 done | -1 stale
FINISH = _script(
    "finish",
    _PRELUDE,
    _FENCE,
    _BURY,
    _SAY,
    """
local s, epoch = ARGV[1], ARGV[2]
local turn = P..'turn:'..s
if stale(s, epoch) then
  if redis.call('GET', P..'ended:'..s) == epoch then return 1 end
  redis.call('INCR', P..'stale')
  return -1
end
local said = say(ARGV[3], ARGV[4])
for _, e in ipairs(redis.call('LRANGE', P..'given:'..s, 0, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r then
    local f = r[2]
    redis.call('SET', P..'msg:'..f[2], 'done:'..said, 'EX', 86400)
    if ARGV[6] ~= '' then bury(ARGV[6], f[2], s, f[6], f[8]) end
    redis.call('XDEL', P..'inbox', e)
  end
end
if ARGV[5] ~= '' then redis.call('XADD', P..'archive', '*', 'kind', 'turn', 'session', s, 'data', ARGV[5]) end
local n = tonumber(ARGV[9])
if n > 0 then
  for i = 10, 9 + n do redis.call('RPUSH', P..'window:'..s, ARGV[i]) end
  if tonumber(ARGV[7]) > 0 then redis.call('LPOP', P..'window:'..s, ARGV[7]) end
  redis.call('PEXPIRE', P..'window:'..s, ARGV[8])
  if ARGV[10 + n] then redis.call('SET', P..'seq:'..s, ARGV[10 + n], 'EX', 7776000) end
end
redis.call('DEL', P..'journal:'..s, P..'given:'..s, turn)
redis.call('SET', P..'ended:'..s, epoch, 'PX', 60000)
if redis.call('EXISTS', P..'mail:'..s, P..'join:'..s) > 0 then
  redis.call('ZADD', P..'due', now, s)
else redis.call('ZREM', P..'due', s) end
return 1
""",
    always=True,
)

# session epoch channel text -> 1 | -1 stale. What is said before the closing output.
TELL = _script(
    "tell",
    _PRELUDE,
    _FENCE,
    _SAY,
    """
if ARGV[1] ~= '' and stale(ARGV[1], ARGV[2]) then
  redis.call('INCR', P..'stale')
  return -1
end
say(ARGV[3], ARGV[4])
return 1
""",
    always=True,
)

# lease session epoch … -> the sessions that are no longer ours
BEAT = _script(
    "beat",
    _PRELUDE,
    _FENCE,
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
RELEASE = _script(
    "release",
    _PRELUDE,
    _FENCE,
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
ACQUIT = _script(
    "acquit",
    _PRELUDE,
    """
local turn = P..'turn:'..ARGV[1]
local tries = tonumber(redis.call('HGET', turn, 'tries') or '0')
if tries > 1 then redis.call('HINCRBY', turn, 'tries', -1) end
return 1
""",
    always=True,
)

# request_id channel text -> 1 delivered | 0 nobody asked | -1 answered already. The asker's desk.
RESPOND = _script(
    "respond",
    _PRELUDE,
    _ADMIT,
    """
local s = redis.call('GET', P..'call:'..ARGV[1])
if not s then return 0 end
if not admit('answer:'..ARGV[1], s, ARGV[2], ARGV[3], '0', 'join') then return -1 end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
""",
)

# request_id bell -> withdrawn | running | gone
WITHDRAW = _script(
    "withdraw",
    _PRELUDE,
    """
local id = ARGV[1]
if redis.call('GET', P..'msg:'..id) ~= 'accepted' then return 'gone' end
for _, e in ipairs(redis.call('LRANGE', P..'mail:'..id, 0, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r and r[2][2] == id then
    redis.call('LREM', P..'mail:'..id, 1, e)
    redis.call('XDEL', P..'inbox', e)
    redis.call('SET', P..'msg:'..id, 'withdrawn', 'EX', 86400)
    if redis.call('EXISTS', P..'mail:'..id, P..'join:'..id, P..'given:'..id) == 0 then
      redis.call('ZREM', P..'due', id)
    end
    return 'withdrawn'
  end
end
redis.call('PUBLISH', ARGV[2], id)
return 'running'
""",
    always=True,
)
