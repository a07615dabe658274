-- A session of whose keys one is of the wrong kind can be held by nobody: what waits in it is buried, and the
-- keys go. What they held of the conversation is in the Store. Needs bury and load.
local function aside(session, why)
  local reason = string.sub('unreadable: '..tostring(type(why) == 'table' and why.err or why), 1, 300)
  local buried = 0
  for _, list in ipairs({'given:', 'mail:', 'join:'}) do
    local found = redis.pcall('LRANGE', P..list..session, 0, -1)
    for _, e in ipairs(found.err and {} or found) do
      local r = redis.pcall('XRANGE', P..'inbox', e, e)
      local f = not r.err and r[1] and r[1][2]
      if f then
        bury(reason, f[2], session, f[6] or '', f[8] or table.concat(f, '\n'))
        redis.call('SET', P..'msg:'..f[2], 'done:', 'EX', 86400)
        redis.call('XDEL', P..'inbox', e)
        loaded(f[12], -1)
        buried = buried + 1
      end
    end
    redis.call('DEL', P..list..session)
  end
  if buried == 0 then bury(reason, '', session, '', '') end
  for _, key in ipairs({'turn:', 'journal:', 'window:', 'seq:', 'untold:', 'thread:'}) do redis.call('DEL', P..key..session) end
  redis.call('ZREM', P..'due', session)
end
