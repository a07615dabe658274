#!lua flags=allow-oom
-- Move an entry that cannot be read from its stream to the dead letters.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 stream  2 entry  3 reason
-- Returns 1 buried | 0 it is gone
-- include: prelude

local stream, entry, reason = P..ARGV[1], ARGV[2], ARGV[3]
local r = redis.call('XRANGE', stream, entry, entry)[1]
if not r then return 0 end
local f = {}
for i = 1, #r[2], 2 do f[r[2][i]] = r[2][i + 1] end
redis.call('XADD', P..'dead', 'MAXLEN', '~', 10000, '*', 'reason', reason, 'id', f['id'] or '',
  'session', f['session'] or '', 'channel', f['channel'] or '',
  'data', string.sub(f['data'] or table.concat(r[2], '\n'), 1, 65536))
redis.call('XDEL', stream, entry)
return 1
