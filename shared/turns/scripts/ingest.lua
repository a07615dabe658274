#!lua
-- Accept plain messages of one numbering, in their order.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 k  2 limit  3 share  4 output channel  5 refusal: busy  6 refusal: not yours  7 refusal: not signed
--   8 refusal: no such thread  9 bell
--   then for each message: i kind id session channel data deadline reply refusal reason person owner way
--   kind: mail | reply | word | claim | join | front | aim (a stop) and add (an amendment) to what `reply` names
--     | kill | posted | answer | dead
-- Returns -1 numbering too old (others had it) | -2 older intakes still hand in
--   | for each message {1 taken, 2 buried, 0 known}
-- include: prelude load take give admit fits owned bury say holds numbers threads

local k, limit, share, output = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local BUSY, NOT_YOURS, NOT_SIGNED, NO_THREAD, bell = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local w = redis.call('HMGET', P..'ears', k, 'closed', 'w'..k)
if not w[1] then return -1 end
local had = tonumber(w[1]) or 0
if tonumber(ARGV[#ARGV - 12]) > had
  and (tonumber(w[2] or '0') or 0) < tonumber(k) - 1 and now < (tonumber(w[3] or '0') or 0) then return -2 end
local function take(a)
  local kind, id, session, channel, data = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
  local reply, owner, way = ARGV[a + 7], ARGV[a + 11], way_of(ARGV[a + 12])
  if id == '' then id = 'p:'..k..':'..ARGV[a] end
  local reason, why, found = ARGV[a + 9], nil, nil
  local function refuse(told, text) kind = 'dead'; reason = told; why = text end
  if way and redis.call('EXISTS', P..'msg:'..id) == 1 then return 0 end
  if kind == 'posted' then
    if belongs(session, owner) then posted(way.trust, way.channel, way.surface, session, way.reply); return 1 end
    refuse('refused: the session is somebody else\'s', NOT_YOURS)
  end
  local named = kind == 'aim' or kind == 'add'
  local fits = kind == 'answer' or kind == 'dead'
    or room(kind == 'claim' and 'mail' or kind, redis.call('XLEN', P..'inbox'), limit, ARGV[a + 10], share)
  if not fits then refuse('busy') end
  if way and kind ~= 'dead' then
    local code, to, as, meant, it = directed(way, kind == 'claim' and 'word' or kind, id, session, reply, owner)
    if code == -4 then refuse('refused: there is no such thread', NO_THREAD)
    elseif code == -3 then refuse('refused: the session is somebody else\'s', NOT_YOURS)
    else
      session, reply, found = to, meant, it
      if kind ~= 'claim' then kind = as end
    end
  end
  local place = kind
  if kind == 'claim' then
    if redis.call('EXISTS', P..'asks:'..session) == 1 then refuse('refused: not signed', NOT_SIGNED)
    else kind = reply ~= '' and 'reply' or 'mail'; place = kind end
  end
  if kind == 'answer' then
    local asked = redis.call('GET', P..'call:'..session)
    if asked then id = 'answer:'..session; session = asked; place = 'join'
    else refuse('unknown_request') end
  end
  local asked
  if kind ~= 'dead' then
    if named and kind ~= 'mail' and not belongs(session, owner) then asked = session
    elseif named and redis.call('EXISTS', P..'msg:'..id) == 1 then return 0
    else asked, place = routed(session, place, reply, id) end
    if asked == session and not belongs(session, owner, kind == 'kill') then
      refuse('refused: the session is somebody else\'s', NOT_YOURS)
    end
  end
  if kind == 'dead' then
    bury(reason, id, session, channel, data)
    -- An agent's request that is refused is answered on the agent's own channel.
    if (ARGV[a + 1] == 'dead' or ARGV[a + 1] == 'mail') and ARGV[a + 7] ~= '' and not way then
      redis.call('PUBLISH', ARGV[a + 7], ARGV[a + 8])
    else say(output, why and string.gsub(ARGV[a + 8], BUSY, why) or ARGV[a + 8]) end
    return 2
  end
  local live = way and redis.call('ZSCORE', P..'due', asked)
  if way then noted(way, session, id) end
  local e = admit(id, asked, channel, data, ARGV[a + 6], place, ARGV[a + 10], found, way and reply)
  if not e then return 0 end
  if owner ~= '' then redis.call('SET', P..'at:'..id, session, 'EX', 86400) end
  if way and live and place ~= 'mail' then ring(bell, asked) end
  if kind == 'kill' then killed(asked, bell, live) end
  return 1
end
local taken = {}
for a = 10, #ARGV, 13 do
  local i = tonumber(ARGV[a])
  if i <= had then taken[#taken + 1] = 0
  else
    redis.call('HSET', P..'ears', k, i)
    taken[#taken + 1] = take(a)
  end
end
return taken
