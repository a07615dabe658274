#!lua flags=allow-oom
-- A worker that lost its lease and lives did not die of this turn: the delivery does not count.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 session
-- Returns 1
-- include: prelude

local session = ARGV[1]
local turn = P..'turn:'..session
local tries = tonumber(redis.call('HGET', turn, 'tries') or '0')
if tries > 1 then redis.call('HINCRBY', turn, 'tries', -1) end
return 1
