#!lua flags=allow-oom
-- Renew leases.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 lease, then for each turn: session epoch
-- Returns the sessions that are no longer ours
-- include: prelude fence

local lease = tonumber(ARGV[1])
local lost = {}
for i = 2, #ARGV, 2 do
  if stale(ARGV[i], ARGV[i + 1]) then lost[#lost + 1] = ARGV[i]
  else redis.call('ZADD', P..'due', 'XX', now + lease, ARGV[i]) end
end
return lost
