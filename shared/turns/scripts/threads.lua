#!lua
-- The threads of a channel, or of all channels, that hold a number now and that a person may see: those into which
-- they may come, and who signs those that are held in their name without a signature.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 channel, or '' for all  2 who: 's:<user>' | 'u:<user>'
-- Returns {channel, number, session, state, owner, words, until when it holds its number}…
-- include: prelude

local wanted, who = ARGV[1], ARGV[2]
local signs = string.sub(who, 1, 2) == 's:'
local said = signs and 'u:'..string.sub(who, 3)
local channels = wanted ~= '' and {wanted} or redis.call('ZREVRANGE', P..'channels', 0, 199)
local found = {}
for _, channel in ipairs(channels) do
  local held = redis.call('ZRANGE', P..'threads:'..channel, 0, -1, 'WITHSCORES')
  for i = 1, #held, 2 do
    local number, ends = held[i], tonumber(held[i + 1])
    local session = redis.call('HGET', P..'numbers:'..channel, number)
    local live = session and redis.call('ZSCORE', P..'due', session)
    local owner = session and redis.call('GET', P..'owner:'..session) or ''
    local shared = string.sub(owner, 1, 1) == '*'
    local whose = shared and string.sub(owner, 2) or owner
    if session and (live or ends > now) and (whose == who or shared and signs or whose == said) then
      local thread = redis.call('HMGET', P..'thread:'..session, 'words', 'killed')
      local state = 'completed'
      if live then state = redis.call('EXISTS', P..'asks:'..session) == 1 and 'waiting for permission' or 'running'
      elseif thread[2] then state = 'killed' end
      found[#found + 1] = {channel, number, session, state, whose, thread[1] or '', string.format('%.0f', ends)}
    end
  end
end
return found
