#!lua flags=allow-oom
-- Send an output before the closing one, or one of no turn (no session).
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 session  2 epoch  3 channel  4 text  5 keep  6 session for which it is kept
--   7 output that is sent again, unless it was acknowledged
-- Returns 1 | -1 stale
-- include: prelude fence say

local session, epoch, channel, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local keep, kept_for, again = ARGV[5], ARGV[6], ARGV[7]
if session ~= '' and stale(session, epoch) then
  redis.call('INCR', P..'stale')
  return -1
end
if again ~= '' and redis.call('XDEL', P..'untold:'..kept_for, again) == 0 then return 1 end
say(channel, text, keep, kept_for)
return 1
