#!lua flags=allow-oom
-- End a turn with its one output. Live events that end it are out with the end.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 session  2 epoch  3 channel  4 output  5 rows for the Store  6 reason of its dead letters
--   7 window records that go  8 window_ms  9 keep  10 handoff of the worker, `<lease> <worker> <channel>`, if it holds
--   nothing else  11 number of window records, then these, then: seq, the stream that keeps live events, their channel,
--   events
-- Returns 1 done | -1 stale
-- include: prelude load fence bury say holds

local session, epoch, channel, output, rows, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local drop, window_ms, keep, idle = tonumber(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]
local window, records = 12, tonumber(ARGV[11])
local tail = window + records
local seq, stream, events_channel, events = ARGV[tail], ARGV[tail + 1], ARGV[tail + 2], tail + 3
local turn = P..'turn:'..session
if stale(session, epoch) then
  if redis.call('GET', P..'ended:'..session) == epoch then return 1 end
  redis.call('INCR', P..'stale')
  return -1
end
local said, load = say(channel, output, keep, session), 0
for _, e in ipairs(redis.call('LRANGE', P..'given:'..session, 0, -1)) do
  local r = redis.call('XRANGE', P..'inbox', e, e)[1]
  if r then
    local f = r[2]
    redis.call('SET', P..'msg:'..f[2], 'done:'..said, 'EX', 86400)
    if reason ~= '' then bury(reason, f[2], session, f[6] or '', f[8] or table.concat(f, '\n')) end
    redis.call('XDEL', P..'inbox', e)
    load = loaded(f[12], -1)
  end
end
if rows ~= '' then redis.call('XADD', P..'archive', '*', 'kind', 'turn', 'session', session, 'data', rows) end
if records > 0 then
  for i = window, tail - 1 do redis.call('RPUSH', P..'window:'..session, ARGV[i]) end
  if drop > 0 then redis.call('LPOP', P..'window:'..session, drop) end
  redis.call('PEXPIRE', P..'window:'..session, window_ms)
  if seq ~= '' then redis.call('SET', P..'seq:'..session, seq, 'EX', 7776000) end
end
for i = events, #ARGV do
  redis.pcall('XADD', stream, 'MAXLEN', '~', 2000, '*', 'data', ARGV[i])
  redis.call('PUBLISH', events_channel, ARGV[i])
end
if ARGV[events] then redis.pcall('EXPIRE', stream, 3600) end
redis.call('DEL', P..'journal:'..session, P..'given:'..session, turn)
redis.call('SET', P..'ended:'..session, epoch, 'PX', 60000)
if redis.call('EXISTS', P..'mail:'..session, P..'join:'..session) > 0 then
  redis.call('ZADD', P..'due', due_at(load), session)
else redis.call('ZREM', P..'due', session) end
kept_number(session)
if idle ~= '' then redis.call('ZADD', P..'idle', now + tonumber(string.match(idle, '^%d+')), idle) end
return 1
