#!lua
-- Raise a budget, once for each key.
-- KEYS  1 prefix of the ledger's keys
-- ARGV  1 scope and its name  2 dollars  3 key
-- Returns 1 where it was raised, 0 where that was done before

local P = KEYS[1]
if not redis.call('SET', P..'allowed:'..ARGV[1]..':'..ARGV[3], 1, 'NX', 'EX', 7776000) then return 0 end
redis.call('INCRBYFLOAT', P..'raised:'..ARGV[1], ARGV[2])
redis.call('EXPIRE', P..'raised:'..ARGV[1], 7776000)
return 1
