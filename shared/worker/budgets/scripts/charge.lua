#!lua
-- Count what a call of a model cost, once however often it is reported.
-- KEYS  1 prefix of the ledger's keys
-- ARGV  1 id of the call  2 day  3 dollars  4 tokens  5 project  6 task  7 session
-- Returns 1 where it was counted, 0 where it was known

local P, day, cost, tokens, project = KEYS[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if redis.call('SADD', P..'seen:'..day, ARGV[1]) == 0 then return 0 end
redis.call('EXPIRE', P..'seen:'..day, 259200)
redis.call('HINCRBYFLOAT', P..'day:'..day, 'cost', cost)
if project ~= '' then
  redis.call('HINCRBYFLOAT', P..'day:'..day, 'tokens:'..project, tokens)
  redis.call('HINCRBY', P..'day:'..day, 'calls:'..project, 1)
  redis.call('HINCRBYFLOAT', P..'project', project, cost)
end
redis.call('EXPIRE', P..'day:'..day, 3456000)
for kind, name in pairs({['task:'] = ARGV[6], ['session:'] = ARGV[7]}) do
  if name ~= '' then
    redis.call('INCRBYFLOAT', P..kind..name, cost)
    redis.call('EXPIRE', P..kind..name, 7776000)
  end
end
return 1
