#!lua
-- Let another have a lease at once.
-- KEYS  1 prefix of the lease's keys
-- ARGV  1 token of the holder
-- Returns 1 | 0

local prefix, token = KEYS[1], ARGV[1]
if redis.call('GET', prefix..'holder') == token then return redis.call('DEL', prefix..'holder') end
return 0
