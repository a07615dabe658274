#!lua flags=allow-oom
-- Give a turn back: after a failure with back-off, or handed over.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 session  2 epoch  3 delay  4 failed
-- Returns 1 | -1 stale
-- include: prelude fence

local session, epoch, delay, failed = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local turn = P..'turn:'..session
if stale(session, epoch) then return -1 end
redis.call('HDEL', turn, 'owner')
redis.call('HSET', turn, 'epoch', redis.call('INCR', P..'epoch'))
redis.call('HINCRBY', turn, 'tries', -1)
if failed then redis.call('HINCRBY', turn, 'fails', 1) end
redis.call('ZADD', P..'due', now + delay, session)
return 1
