"""What comes in: messages, posted or heard, answers to requests, and requests that are taken back."""

from __future__ import annotations

from shared.turns.scripts.parts import ADMIT, BURY, LOAD, OWNED, PRELUDE, SAY, script
from shared.turns.scripts.taking import GIVE, TAKE

# What a refusal says; without anything that a pattern or a string of Lua or JSON would take for something else.
BUSY = "busy: too much is waiting, try later"
NOT_YOURS = "this session belongs to somebody else: leave session_id out, or name one of your own"
NOT_SIGNED = (
    "this is not signed, so it allows nothing: answer with promptdock approvals, sign it as docs/wire.md says, "
    "or let everybody do it: UNSIGNED_MAY=approve"
)

# Whether there is room for a message: on the desk for what opens a turn, and in the share of its person; twice as
# much of what joins or ends turns.
FITS = """
local function room(place, waiting, limit, person, share)
  local opens = place == 'mail' or place == 'reply' or place == 'word'
  if opens and (waiting >= tonumber(limit) or redis.call('EXISTS', P..'full') == 1) then return false end
  if person == '' then return true end
  local theirs = tonumber(redis.call('HGET', P..'load', person) or '0')
  if theirs >= tonumber(share) * (opens and 1 or 2) then return false, theirs end
  return true
end
"""

# channel id session deadline text limit place reply person share owner
# -> {1, waiting} | {0, state} known | {-1, waiting} busy | {-2, theirs} too much of this person waits
#    | {-3, 0} the session is somebody else's
POST = script(
    "post",
    PRELUDE,
    LOAD,
    TAKE,
    GIVE,
    ADMIT,
    FITS,
    OWNED,
    """
local waiting = redis.call('XLEN', P..'inbox')
local fits, theirs = room(ARGV[7], waiting, ARGV[6], ARGV[9], ARGV[10])
if not fits then
  local was = redis.call('GET', P..'msg:'..ARGV[2])
  if was then return {0, was} end
  if theirs then return {-2, theirs} end
  return {-1, waiting}
end
local named = ARGV[7] == 'aim' or ARGV[7] == 'add'
if named then
  if not belongs(ARGV[3], ARGV[11]) then return {-3, 0} end
  local was = redis.call('GET', P..'msg:'..ARGV[2])
  if was then return {0, was} end
end
local session, place = routed(ARGV[3], ARGV[7], ARGV[8], ARGV[2])
if session == ARGV[3] and not belongs(session, ARGV[11]) then return {-3, 0} end
local e, was = admit(ARGV[2], session, ARGV[1], ARGV[5], ARGV[4], place, ARGV[9])
if not e then return {0, was} end
redis.call('PUBLISH', ARGV[1], ARGV[5])
return {1, waiting}
""",
)

# channel deaf_ms -> {k, ears that listen}.
# An ear opens a numbering; the marker travels in the order of the channels themselves. `w<k>` is
# until when numbering k waits for the end of the one before: whoever heard that may be dead.
JOIN = script(
    "join",
    PRELUDE,
    BURY,
    """
-- What something else put in place of a key of ours is moved out of the way: nobody could work at this desk.
for _, one in ipairs({'dead stream', 'archive stream', 'inbox stream', 'out stream', 'due zset', 'idle zset',
    'ears hash', 'ear string', 'epoch string', 'full string'}) do
  local name, kind = string.match(one, '(%a+) (%a+)')
  local is = redis.call('TYPE', P..name).ok
  if is ~= kind and is ~= 'none' then
    redis.call('RENAME', P..name, P..'spoiled:'..name)
    bury('unreadable: '..name..' was a '..is..'; it is kept as spoiled:'..name, '', '', '', '')
  end
end
for _, name in ipairs({'ear', 'epoch'}) do
  local is = redis.call('GET', P..name)
  if is and not string.match(is, '^%d+$') then redis.call('SET', P..name, now) end
end
local k = redis.call('INCR', P..'ear')
redis.call('HSET', P..'ears', k, 0)
redis.call('HDEL', P..'ears', k - 64, 'w'..(k - 64))
redis.call('ZREMRANGEBYSCORE', P..'idle', '-inf', now)  -- those that died are replaced by whoever joins
local heard = redis.call('PUBLISH', ARGV[1], k)
if heard <= 1 then redis.call('HSET', P..'ears', 'closed', k - 1)
else redis.call('HSET', P..'ears', 'w'..k, now + 3000) end
-- Plain messages that came while nobody listened are lost; only a server that was there can have had some.
local deaf = tonumber(ARGV[2])
if heard <= 1 and deaf > 0 then
  local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)') or '0') * 1000
  if up > deaf then
    bury('gap: plain messages may have been lost between '..string.format('%.0f', now - deaf)..' and '..
      string.format('%.0f', now)..' (ms since 1970): nobody listened', '', '', '', '')
  end
end
return {k, heard}
""",
)

# k -> 0 | -2 older ears still hand in. Whoever heard numbering k to its end says so, after its last message.
CLOSE = script(
    "close",
    PRELUDE,
    """
local w = redis.call('HMGET', P..'ears', 'closed', 'w'..ARGV[1])
local closed = tonumber(w[1] or '0') or 0
-- An ear that heard nothing in k must not overtake those that still hand in what they heard before it.
if closed < tonumber(ARGV[1]) - 1 and now < (tonumber(w[2] or '0') or 0) then return -2 end
if tonumber(ARGV[1]) > closed then redis.call('HSET', P..'ears', 'closed', ARGV[1]) end
return 0
""",
)

# k limit share output_channel, then for each message, in their order:
#   i kind id session channel data deadline reply refusal reason person owner
# kind: mail | reply | word | join | front | aim (a stop) and add (an amendment) to what `reply` names | answer | dead.
# -> -1 numbering too old (others had it) | -2 older ears still hand in
#    | for each message {1 taken, 2 buried, 0 known}
HEAR = script(
    "hear",
    PRELUDE,
    LOAD,
    TAKE,
    GIVE,
    ADMIT,
    FITS,
    OWNED,
    BURY,
    SAY,
    f"local BUSY, NOT_YOURS, NOT_SIGNED = [[{BUSY}]], [[{NOT_YOURS}]], [[{NOT_SIGNED}]]\n",
    """
local k = ARGV[1]
local w = redis.call('HMGET', P..'ears', k, 'closed', 'w'..k)
if not w[1] then return -1 end
local had = tonumber(w[1]) or 0
if tonumber(ARGV[#ARGV - 11]) > had
  and (tonumber(w[2] or '0') or 0) < tonumber(k) - 1 and now < (tonumber(w[3] or '0') or 0) then return -2 end
local function take(a)
  local kind, id, session, channel, data = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
  if id == '' then id = 'p:'..k..':'..ARGV[a] end
  local place, reason, why = kind, ARGV[a + 9], nil
  if kind == 'claim' then
    if redis.call('EXISTS', P..'asks:'..session) == 1 then
      kind = 'dead'; reason = 'refused: not signed'; why = NOT_SIGNED
    else kind = ARGV[a + 7] ~= '' and 'reply' or 'mail'; place = kind end
  end
  if kind == 'answer' then
    local asked = redis.call('GET', P..'call:'..session)
    if asked then id = 'answer:'..session; session = asked; place = 'join'
    else kind = 'dead'; reason = 'unknown_request' end
  elseif kind ~= 'dead' and not room(kind, redis.call('XLEN', P..'inbox'), ARGV[2], ARGV[a + 10], ARGV[3]) then
    kind = 'dead'; reason = 'busy'
  end
  local asked
  if kind ~= 'dead' then
    local named = place == 'aim' or place == 'add'
    if named and not belongs(session, ARGV[a + 11]) then asked = session
    elseif named and redis.call('EXISTS', P..'msg:'..id) == 1 then return 0
    else asked, place = routed(session, place, ARGV[a + 7], id) end
    if asked == session and not belongs(session, ARGV[a + 11]) then
      kind = 'dead'; reason = 'refused: the session is somebody else\\'s'; why = NOT_YOURS
    end
  end
  if kind == 'dead' then
    bury(reason, id, session, channel, data)
    -- An agent's request that is refused is answered on the agent's own channel.
    if (ARGV[a + 1] == 'dead' or ARGV[a + 1] == 'mail') and ARGV[a + 7] ~= '' then
      redis.call('PUBLISH', ARGV[a + 7], ARGV[a + 8])
    else say(ARGV[4], why and string.gsub(ARGV[a + 8], BUSY, why) or ARGV[a + 8]) end
    return 2
  end
  return admit(id, asked, channel, data, ARGV[a + 6], place, ARGV[a + 10]) and 1 or 0
end
local taken = {}
for a = 5, #ARGV, 12 do
  local i = tonumber(ARGV[a])
  if i <= had then taken[#taken + 1] = 0
  else
    redis.call('HSET', P..'ears', k, i)
    taken[#taken + 1] = take(a)
  end
end
return taken
""",
)

# request_id channel text -> 1 delivered | 0 nobody asked | -1 answered already. The asker's desk.
RESPOND = script(
    "respond",
    PRELUDE,
    LOAD,
    TAKE,
    GIVE,
    ADMIT,
    """
local s = redis.call('GET', P..'call:'..ARGV[1])
if not s then return 0 end
if not admit('answer:'..ARGV[1], s, ARGV[2], ARGV[3], '0', 'join', '') then return -1 end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
""",
)

# stream entry reason -> 1 buried | 0 it is gone. An entry that cannot be read leaves its stream.
UNREADABLE = script(
    "unreadable",
    PRELUDE,
    """
local r = redis.call('XRANGE', P..ARGV[1], ARGV[2], ARGV[2])[1]
if not r then return 0 end
local f = {}
for i = 1, #r[2], 2 do f[r[2][i]] = r[2][i + 1] end
redis.call('XADD', P..'dead', 'MAXLEN', '~', 10000, '*', 'reason', ARGV[3], 'id', f['id'] or '',
  'session', f['session'] or '', 'channel', f['channel'] or '',
  'data', string.sub(f['data'] or table.concat(r[2], '\\n'), 1, 65536))
redis.call('XDEL', P..ARGV[1], ARGV[2])
return 1
""",
    always=True,
)

# request_id bell -> withdrawn | running | gone
WITHDRAW = script(
    "withdraw",
    PRELUDE,
    LOAD,
    """
local id = ARGV[1]
if redis.call('GET', P..'msg:'..id) ~= 'accepted' then return 'gone' end
for _, e in ipairs(redis.call('LRANGE', P..'mail:'..id, 0, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r and r[2][2] == id then
    redis.call('LREM', P..'mail:'..id, 1, e)
    redis.call('XDEL', P..'inbox', e)
    loaded(r[2][12], -1)
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
