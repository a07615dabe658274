#!lua
-- What was spent in each scope, and by how much a person raised two of them.
-- KEYS  1 prefix of the ledger's keys
-- ARGV  1 day  2 project  3 task  4 session
-- Returns dollars of the day, the project, the task, the session; then those raised for the day and the session

local P = KEYS[1]
return {
  redis.call('HGET', P..'day:'..ARGV[1], 'cost') or '0',
  redis.call('HGET', P..'project', ARGV[2]) or '0',
  redis.call('GET', P..'task:'..ARGV[3]) or '0',
  redis.call('GET', P..'session:'..ARGV[4]) or '0',
  redis.call('GET', P..'raised:day:'..ARGV[1]) or '0',
  redis.call('GET', P..'raised:session:'..ARGV[4]) or '0',
}
