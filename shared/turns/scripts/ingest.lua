#!lua
-- Accept plain messages of one numbering, in their order.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 k  2 limit  3 share  4 output channel  5 refusal: busy  6 refusal: not yours  7 refusal: not signed
--   then for each message: i kind id session channel data deadline reply refusal reason person owner
--   kind: mail | reply | word | claim | join | front | aim (a stop) and add (an amendment) to what `reply` names
--     | answer | dead
-- Returns -1 numbering too old (others had it) | -2 older intakes still hand in
--   | for each message {1 taken, 2 buried, 0 known}
-- include: prelude load take give admit fits owned bury say

local k, limit, share, output = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local BUSY, NOT_YOURS, NOT_SIGNED = ARGV[5], ARGV[6], ARGV[7]
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
  elseif kind ~= 'dead' and not room(kind, redis.call('XLEN', P..'inbox'), limit, ARGV[a + 10], share) then
    kind = 'dead'; reason = 'busy'
  end
  local asked
  if kind ~= 'dead' then
    local named = place == 'aim' or place == 'add'
    if named and not belongs(session, ARGV[a + 11]) then asked = session
    elseif named and redis.call('EXISTS', P..'msg:'..id) == 1 then return 0
    else asked, place = routed(session, place, ARGV[a + 7], id) end
    if asked == session and not belongs(session, ARGV[a + 11]) then
      kind = 'dead'; reason = 'refused: the session is somebody else\'s'; why = NOT_YOURS
    end
  end
  if kind == 'dead' then
    bury(reason, id, session, channel, data)
    -- An agent's request that is refused is answered on the agent's own channel.
    if (ARGV[a + 1] == 'dead' or ARGV[a + 1] == 'mail') and ARGV[a + 7] ~= '' then
      redis.call('PUBLISH', ARGV[a + 7], ARGV[a + 8])
    else say(output, why and string.gsub(ARGV[a + 8], BUSY, why) or ARGV[a + 8]) end
    return 2
  end
  return admit(id, asked, channel, data, ARGV[a + 6], place, ARGV[a + 10]) and 1 or 0
end
local taken = {}
for a = 8, #ARGV, 12 do
  local i = tonumber(ARGV[a])
  if i <= had then taken[#taken + 1] = 0
  else
    redis.call('HSET', P..'ears', k, i)
    taken[#taken + 1] = take(a)
  end
end
return taken
