-- A number is a thread's for as long as it runs, and for a day after its last word.
local HELD = 86400000
local function holds(channel, number, session)
  if redis.call('HGET', P..'numbers:'..channel, number) ~= session then return false end
  redis.call('ZADD', P..'threads:'..channel, now + HELD, number)
  return true
end
-- A turn of a session that may be a thread has ended: it keeps its number, if it still has it.
local function kept_number(session)
  if string.sub(session, 1, 7) ~= 'thread:' then return end
  local place = redis.call('HMGET', P..'thread:'..session, 'channel', 'number')
  if place[1] and place[2] then holds(place[1], place[2], session) end
end
