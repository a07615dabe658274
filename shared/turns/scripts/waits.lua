#!lua
-- Whether something waits to be stored. Outputs are a stream that is read, not emptied.
-- KEYS  1 prefix of the agent's keys
-- Returns 1 | 0

if redis.call('XLEN', KEYS[1]..'archive') > 0 then return 1 end
local last = redis.call('XREVRANGE', KEYS[1]..'out', '+', '-', 'COUNT', 1)[1]
return last and last[1] ~= redis.call('GET', KEYS[1]..'archive:said') and 1 or 0
