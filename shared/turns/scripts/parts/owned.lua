-- A session belongs to whom its first message was from. owner: '' is nobody's | 's:<user>' of a person, whose
-- gateway signs | 'u:<user>' of somebody who says so | with a '*' before it, shared with all whose gateways sign.
-- `ends`: what is begun in a person's name without a signature is theirs to end.
local function belongs(session, owner, ends)
  if owner == '' then return true end
  local share = string.sub(owner, 1, 1) == '*'
  local who = share and string.sub(owner, 2) or owner
  local signs = string.sub(who, 1, 2) == 's:'
  local key = P..'owner:'..session
  local has = redis.call('GET', key)
  if not has then
    if signs then redis.call('SET', key, owner) else redis.call('SET', key, owner, 'EX', 7776000) end
    return true
  end
  local shared = string.sub(has, 1, 1) == '*'
  if (shared and string.sub(has, 2) or has) == who then
    if share and not shared then redis.call('SET', key, owner) end
    return true
  end
  return signs and (shared or ends and has == 'u:'..string.sub(who, 3))
end
