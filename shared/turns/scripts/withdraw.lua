#!lua flags=allow-oom
-- Take a request back, or tell the turn that runs it to stop.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 request id  2 wake-up channel
-- Returns withdrawn | running | gone
-- include: prelude load

local id, wake_up = ARGV[1], ARGV[2]
if redis.call('GET', P..'msg:'..id) ~= 'accepted' then return 'gone' end
for _, e in ipairs(redis.call('LRANGE', P..'mail:'..id, 0, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r and r[2][2] == id then
    redis.call('LREM', P..'mail:'..id, 1, e)
    redis.call('XDEL', P..'inbox', e)
    loaded(r[2][12], -1)
    redis.call('SET', P..'msg:'..id, 'withdrawn', 'EX', 86400)
    if redis.call('EXISTS', P..'mail:'..id, P..'join:'..id, P..'given:'..id) == 0 then
      redis.call('ZREM', P..'due', id)
    end
    return 'withdrawn'
  end
end
redis.call('PUBLISH', wake_up, id)
return 'running'
