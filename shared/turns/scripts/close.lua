#!lua
-- Close numbering k: whoever heard it to its end says so, after its last message.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 k
-- Returns 0 | -2 older intakes still hand in
-- include: prelude

local k = ARGV[1]
local w = redis.call('HMGET', P..'ears', 'closed', 'w'..k)
local closed = tonumber(w[1] or '0') or 0
-- An intake that heard nothing in k must not overtake those that still hand in what they heard before it.
if closed < tonumber(k) - 1 and now < (tonumber(w[2] or '0') or 0) then return -2 end
if tonumber(k) > closed then redis.call('HSET', P..'ears', 'closed', k) end
return 0
