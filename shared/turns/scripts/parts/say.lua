-- An output is kept for its session until a gateway acknowledges that the person was shown it (XDEL), or until
-- it is sent again. keep: '' not at all | 'shown' by whoever acknowledges, who is remembered | 'news' if the
-- session's gateway is known to acknowledge | 'always'. Where the streams' numbers ever disagree, it is only sent.
local function say(channel, text, keep, session)
  if text == '' then return '' end
  local e = redis.call('XADD', P..'out', 'MINID', '~', now - 86400000, '*', 'data', text)
  if keep == 'shown' then redis.call('SET', P..'shows:'..session, 1, 'EX', 2592000) end
  if keep == 'shown' or keep == 'always' or keep == 'news' and redis.call('EXISTS', P..'shows:'..session) == 1 then
    redis.pcall('XADD', P..'untold:'..session, 'MAXLEN', 50, e, 'data', text)
    redis.call('EXPIRE', P..'untold:'..session, 2592000)
  end
  redis.call('PUBLISH', channel, text)
  return e
end
