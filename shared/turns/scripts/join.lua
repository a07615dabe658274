#!lua
-- Open a numbering of plain messages; the marker travels in the order of the channels themselves. `w<k>` is until
-- when numbering k waits for the end of the one before: whoever heard that may be dead.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 channel of the marker  2 milliseconds for which nobody listened
-- Returns {k, intakes that listen}
-- include: prelude bury

local marker, deaf = ARGV[1], tonumber(ARGV[2])
-- What something else put in place of a key of ours is moved out of the way: nobody could work at this queue.
for _, one in ipairs({'dead stream', 'archive stream', 'inbox stream', 'out stream', 'due zset', 'idle zset',
    'channels zset', 'ears hash', 'ear string', 'epoch string', 'full string'}) do
  local name, kind = string.match(one, '(%a+) (%a+)')
  local is = redis.call('TYPE', P..name).ok
  if is ~= kind and is ~= 'none' then
    redis.call('RENAME', P..name, P..'spoiled:'..name)
    bury('unreadable: '..name..' was a '..is..'; it is kept as spoiled:'..name, '', '', '', '')
  end
end
for _, name in ipairs({'ear', 'epoch'}) do
  local is = redis.call('GET', P..name)
  if is and not string.match(is, '^%d+$') then redis.call('SET', P..name, now) end
end
local k = redis.call('INCR', P..'ear')
redis.call('HSET', P..'ears', k, 0)
redis.call('HDEL', P..'ears', k - 64, 'w'..(k - 64))
redis.call('ZREMRANGEBYSCORE', P..'idle', '-inf', now)  -- those that died are replaced by whoever joins
local heard = redis.call('PUBLISH', marker, k)
if heard <= 1 then redis.call('HSET', P..'ears', 'closed', k - 1)
else redis.call('HSET', P..'ears', 'w'..k, now + 3000) end
-- Plain messages that came while nobody listened are lost; only a server that was there can have had some.
if heard <= 1 and deaf > 0 then
  local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)') or '0') * 1000
  if up > deaf then
    bury('gap: plain messages may have been lost between '..string.format('%.0f', now - deaf)..' and '..
      string.format('%.0f', now)..' (ms since 1970): nobody listened', '', '', '', '')
  end
end
return {k, heard}
