#!lua
-- Claim the turns that have been due longest. Turns of one call share its epoch.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 worker  2 lease  3 token  4 retry  5 room
-- Returns {ms until more is due or -1, now, turn…}, at most `room` turns, as parts/take.lua tells them
-- include: prelude load bury take aside

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
