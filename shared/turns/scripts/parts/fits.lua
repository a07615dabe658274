-- Whether there is room for a message: in the queue for what opens a turn, and in the share of its person; twice as
-- much of what joins or ends turns.
local function room(place, waiting, limit, person, share)
  local opens = place == 'mail' or place == 'reply' or place == 'word'
  if opens and (waiting >= tonumber(limit) or redis.call('EXISTS', P..'full') == 1) then return false end
  if person == '' then return true end
  local theirs = tonumber(redis.call('HGET', P..'load', person) or '0')
  if theirs >= tonumber(share) * (opens and 1 or 2) then return false, theirs end
  return true
end
