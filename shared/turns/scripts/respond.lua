#!lua
-- Deliver an answer into the session that asked.
-- KEYS  1 prefix of the agent's keys, who asked
-- ARGV  1 request id  2 channel  3 text
-- Returns 1 delivered | 0 nobody asked | -1 answered already
-- include: prelude load take give admit

local request, channel, text = ARGV[1], ARGV[2], ARGV[3]
local session = redis.call('GET', P..'call:'..request)
if not session then return 0 end
if not admit('answer:'..request, session, channel, text, '0', 'join', '') then return -1 end
redis.call('PUBLISH', channel, text)
return 1
