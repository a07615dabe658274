-- The fence: only the newest claim of a session may change anything.
local function stale(session, epoch)
  return redis.call('HGET', P..'turn:'..session, 'epoch') ~= epoch
end
