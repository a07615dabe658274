#!lua flags=allow-oom
-- Append to a turn's journal, renew its lease, and take in what joined.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 session  2 epoch  3 lease  4 position in the journal  5 known messages  6 number of calls
--   then the calls, then the records
-- Returns -1 stale | -2 journal full | {entry fields of what came since}
-- include: prelude fence

local session, epoch, lease, position = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local known, calls = tonumber(ARGV[5]), 7
local records = calls + tonumber(ARGV[6])
local turn = P..'turn:'..session
if stale(session, epoch) then redis.call('INCR', P..'stale'); return -1 end
redis.call('ZADD', P..'due', 'XX', now + lease, session)
for i = calls, records - 1 do redis.call('SET', P..'call:'..ARGV[i], session, 'EX', 172800) end
local have = redis.call('LLEN', P..'journal:'..session)
if have == position then
  local size = 0
  for i = records, #ARGV do size = size + #ARGV[i] end
  if size > 0 then
    if redis.call('HINCRBY', turn, 'bytes', size) > 8388608 then return -2 end
    for i = records, #ARGV do redis.call('RPUSH', P..'journal:'..session, ARGV[i]) end
    redis.call('HSET', turn, 'tries', 1)  -- it got on: whoever dies next dies of something else
  end
end
local came = {}
if known < 0 then return came end
while true do
  local e = redis.call('LPOP', P..'join:'..session)
  if not e then break end
  redis.call('RPUSH', P..'given:'..session, e)
end
for _, e in ipairs(redis.call('LRANGE', P..'given:'..session, known, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r then came[#came + 1] = r[2] end
end
return came
