-- What waits is counted for each person, so that nobody's flood refuses or delays others: a share of the queue each,
-- and of what is due, whoever has little waiting comes first, by five minutes at most. No person: agents of ours.
local function loaded(person, by)
  if not person or person == '' then return 0 end
  local n = redis.call('HINCRBY', P..'load', person, by)
  if n <= 0 then redis.call('HDEL', P..'load', person) end
  return n
end
local function due_at(load)
  if load < 1 then return now end
  return now - math.floor(300000 / load)
end
