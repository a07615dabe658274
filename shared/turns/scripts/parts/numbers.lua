-- Numbers of the threads of a channel. One is a thread's for as long as it runs, and for a day after its last word; then
-- it is free, and the lowest free one is given next. Needs holds.
local function free_number(channel)
  local threads, found = P..'threads:'..channel, nil
  for _, n in ipairs(redis.call('ZRANGEBYSCORE', threads, '-inf', now)) do
    local has = redis.call('HGET', P..'numbers:'..channel, n)
    if has and redis.call('ZSCORE', P..'due', has) then redis.call('ZADD', threads, now + HELD, n)
    elseif not found or tonumber(n) < tonumber(found) then found = n end
  end
  return found or tostring(redis.call('ZCARD', threads) + 1)
end
local function numbered(channel, session)
  local thread = P..'thread:'..session
  local number = redis.call('HGET', thread, 'number')
  if not number or not holds(channel, number, session) then
    number = free_number(channel)
    redis.call('HSET', P..'numbers:'..channel, number, session)
    redis.call('HSET', thread, 'channel', channel, 'number', number)
    holds(channel, number, session)
  end
  redis.call('ZADD', P..'channels', now, channel)
  redis.call('ZREMRANGEBYRANK', P..'channels', 0, -10001)
  for _, key in ipairs({'thread:'..session, 'threads:'..channel, 'numbers:'..channel}) do
    redis.call('EXPIRE', P..key, 7776000)
  end
end
-- Something was said in a session that may be a thread: it has a number, and the channel its last word.
local function went_on(session)
  if string.sub(session, 1, 7) ~= 'thread:' then return end
  local channel = redis.call('HMGET', P..'thread:'..session, 'channel', 'number')
  if channel[1] and channel[2] then numbered(channel[1], session) end
end
