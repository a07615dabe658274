#!lua
-- Take or renew a lease. Each new holder gets a higher epoch.
-- KEYS  1 prefix of the lease's keys
-- ARGV  1 token of the holder  2 ms
-- Returns the epoch of the lease if it is ours, else 0

local prefix, token, ms = KEYS[1], ARGV[1], ARGV[2]
local holder = redis.call('GET', prefix..'holder')
if holder and holder ~= token then return 0 end
redis.call('SET', prefix..'holder', token, 'PX', ms)
if not holder then return redis.call('INCR', prefix..'epoch') end
return tonumber(redis.call('GET', prefix..'epoch'))
