"""What several scripts have in common, and how one is put together."""

from __future__ import annotations

from shared import failpoints
from shared.bus.base import Script

PRELUDE = """
local P = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""

# The fence: only the newest claim of a session may change anything.
FENCE = """
local function stale(session, epoch)
  return redis.call('HGET', P..'turn:'..session, 'epoch') ~= epoch
end
"""
if failpoints.without("fencing"):
    FENCE = "local function stale(session, epoch) return false end\n"

# What waits is counted for each person, so that nobody's flood refuses or delays others: a share of the desk each,
# and of what is due, whoever has little waiting comes first, by five minutes at most. No person: agents of ours.
LOAD = """
local function loaded(person, by)
  if not person or person == '' then return 0 end
  local n = redis.call('HINCRBY', P..'load', person, by)
  if n <= 0 then redis.call('HDEL', P..'load', person) end
  return n
end
local function due_at(load)
  if load < 1 then return now end
  return now - math.floor(300000 / load)
end
"""

# A session belongs to whom its first message was from. owner: '' is nobody's | 's:<user>' of a person, whose
# gateway signs | 'u:<user>' of somebody who says so | with a '*' before it, shared with all whose gateways sign.
OWNED = """
local function belongs(session, owner)
  if owner == '' then return true end
  local share = string.sub(owner, 1, 1) == '*'
  local who = share and string.sub(owner, 2) or owner
  local signs = string.sub(who, 1, 2) == 's:'
  local key = P..'owner:'..session
  local has = redis.call('GET', key)
  if not has then
    if signs then redis.call('SET', key, owner) else redis.call('SET', key, owner, 'EX', 7776000) end
    return true
  end
  local shared = string.sub(has, 1, 1) == '*'
  if (shared and string.sub(has, 2) or has) == who then
    if share and not shared then redis.call('SET', key, owner) end
    return true
  end
  return shared and signs
end
"""
# A message is accepted: known by its id, in the inbox, in its session's mail (or among what may join the turn
# that runs), its session due, and on its way to the Store. A negative deadline counts from now. Needs LOAD,
# TAKE and GIVE.
ADMIT = """
local function admit(id, session, channel, data, deadline, place, person)
  local was = redis.call('SET', P..'msg:'..id, 'accepted', 'NX', 'GET')
  if was then return false, was end
  local ends = tonumber(deadline)
  if ends < 0 then ends = now - ends end
  local e = redis.call('XADD', P..'inbox', '*', 'id', id, 'session', session, 'channel', channel,
    'data', data, 'deadline', ends, 'person', person)
  local opens = redis.call('ZADD', P..'due', 'NX', due_at(loaded(person, 1)), session) == 1
  redis.call('XADD', P..'archive', '*', 'kind', 'message', 'channel', channel, 'session', session,
    'id', id, 'data', data)
  local message = {'id', id, 'session', session, 'channel', channel, 'data', data, 'deadline', ends}
  if opens then
    local whole, given = pcall(give, session, e, message)
    if given == true then return e, 'accepted' end
    if not whole then redis.pcall('LREM', P..'given:'..session, 0, e) end  -- what is wrong there, a claim finds out
  end
  local list = 'mail:'
  if place ~= 'mail' then list = 'join:' end
  if place == 'front' then redis.call('LPUSH', P..list..session, e)
  else redis.call('RPUSH', P..list..session, e) end
  return e, 'accepted'
end
-- A reply to something of the turn that runs joins it; else it waits like any other message.
local function placed(session, place, reply)
  if place ~= 'reply' then return place end
  local root = redis.call('HGET', P..'turn:'..session, 'root')
  if root and (reply == root or string.sub(reply, 1, #root + 1) == root..'.') then return 'join' end
  return 'mail'
end
-- What names a turn, a message that it answers, or a request of it, is for that turn alone.
local function meant(session, name)
  local root = redis.call('HGET', P..'turn:'..session, 'root')
  if not root then return false end
  if name == root or string.sub(name, 1, #root + 1) == root..'.' then return true end
  for _, e in ipairs(redis.call('LRANGE', P..'given:'..session, 0, -1)) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r and r[2][2] == name then return true end
  end
  return false
end
-- A stop for a message that waits takes it back: `by` answers for both.
local function take_back(session, name, by)
  for _, e in ipairs(redis.call('LRANGE', P..'mail:'..session, 0, -1)) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r and r[2][2] == name then
      redis.call('LREM', P..'mail:'..session, 1, e)
      redis.call('XDEL', P..'inbox', e)
      loaded(r[2][12], -1)
      redis.call('SET', P..'msg:'..name, 'withdrawn:'..by, 'EX', 86400)
      if redis.call('EXISTS', P..'mail:'..session, P..'join:'..session, P..'given:'..session) == 0 then
        redis.call('ZREM', P..'due', session)
      end
      return
    end
  end
end
-- A plain yes or no answers the question that is open in its session: in a session of its own, since that one
-- may be what waits for it. Where no question is open it is a message like any other.
local function routed(session, place, reply, id)
  if place == 'aim' or place == 'add' then
    if meant(session, reply) then return session, place == 'aim' and 'front' or 'join' end
    if place == 'aim' then take_back(session, reply, id) end
    return 'apart:'..id, 'mail'  -- it stops nothing else, and is told at once what became of what it names
  end
  if place ~= 'word' then return session, placed(session, place, reply) end
  if redis.call('EXISTS', P..'asks:'..session) == 1 then return 'asks:'..session, 'mail' end
  return session, placed(session, reply ~= '' and 'reply' or 'mail', reply)
end
"""

BURY = """
local function bury(reason, id, session, channel, data)
  redis.call('XADD', P..'dead', 'MAXLEN', '~', 10000, '*', 'reason', reason, 'id', id,
    'session', session, 'channel', channel, 'data', data)
  redis.call('XADD', P..'archive', '*', 'kind', 'dead', 'reason', reason, 'channel', channel,
    'session', session, 'id', id, 'data', data)
end
"""

# A session of whose keys one is of the wrong kind can be held by nobody: what waits in it is buried, and the
# keys go. What they held of the conversation is in the Store. Needs BURY and LOAD.
ASIDE = """
local function aside(session, why)
  local reason = string.sub('unreadable: '..tostring(type(why) == 'table' and why.err or why), 1, 300)
  local buried = 0
  for _, list in ipairs({'given:', 'mail:', 'join:'}) do
    local found = redis.pcall('LRANGE', P..list..session, 0, -1)
    for _, e in ipairs(found.err and {} or found) do
      local r = redis.pcall('XRANGE', P..'inbox', e, e)
      local f = not r.err and r[1] and r[1][2]
      if f then
        bury(reason, f[2], session, f[6] or '', f[8] or table.concat(f, '\\n'))
        redis.call('SET', P..'msg:'..f[2], 'done:', 'EX', 86400)
        redis.call('XDEL', P..'inbox', e)
        loaded(f[12], -1)
        buried = buried + 1
      end
    end
    redis.call('DEL', P..list..session)
  end
  if buried == 0 then bury(reason, '', session, '', '') end
  for _, key in ipairs({'turn:', 'journal:', 'window:', 'seq:', 'untold:'}) do redis.call('DEL', P..key..session) end
  redis.call('ZREM', P..'due', session)
end
"""

# What is said is kept for its session until a gateway acknowledges that the person was shown it (XDEL), or until
# it is told again. keep: '' not at all | 'shown' by whoever acknowledges, who is remembered | 'news' if the
# session's gateway is known to acknowledge | 'always'. Where the streams' numbers ever disagree, it is only said.
SAY = """
local function say(channel, text, keep, session)
  if text == '' then return '' end
  local e = redis.call('XADD', P..'out', 'MINID', '~', now - 86400000, '*', 'data', text)
  if keep == 'shown' then redis.call('SET', P..'shows:'..session, 1, 'EX', 2592000) end
  if keep == 'shown' or keep == 'always' or keep == 'news' and redis.call('EXISTS', P..'shows:'..session) == 1 then
    redis.pcall('XADD', P..'untold:'..session, 'MAXLEN', 50, e, 'data', text)
    redis.call('EXPIRE', P..'untold:'..session, 2592000)
  end
  redis.call('PUBLISH', channel, text)
  return e
end
"""


def script(name: str, *parts: str, always: bool = False) -> Script:
    header = "#!lua flags=allow-oom\n" if always else "#!lua\n"
    return Script(name, header + "".join(parts))
