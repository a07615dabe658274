-- A message that opens a turn is given to an idle worker at once, unless something waits longer: one write, and one
-- way, less than a claim of its own. Who died does not listen on its channel any more, and who is frozen counts as
-- idle for a lease at most. Where the worker is not told, the lease runs out like that of one that died.
local function resp(value)
  if type(value) == 'number' then return string.format(':%.0f\r\n', value) end
  if type(value) == 'string' then return '$'..#value..'\r\n'..value..'\r\n' end
  local parts = {'*'..#value..'\r\n'}
  for i, one in ipairs(value) do parts[i + 1] = resp(one) end
  return table.concat(parts)
end
local function give(session, e, message)
  local last = redis.call('ZPOPMAX', P..'idle')
  if not last[1] then return false end
  if redis.call('ZRANGE', P..'due', 0, 0)[1] ~= session then
    redis.call('ZADD', P..'idle', last[2], last[1])
    return false
  end
  local lease, worker, channel = string.match(last[1], '^(%d+) (%S+) (.*)$')
  if not channel or tonumber(last[2]) < now or redis.call('PUBSUB', 'NUMSUB', channel)[2] == 0 then return false end
  redis.call('RPUSH', P..'given:'..session, e)
  local epoch = redis.call('INCR', P..'epoch')
  local turn = lend(session, epoch, worker, tonumber(lease), {}, {e}, {message}, {})
  redis.call('PUBLISH', channel, resp({now, turn}))
  return true
end
