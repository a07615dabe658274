-- A message is accepted: known by its id, in the inbox, in its session's mail (or among what may join the turn
-- that runs), its session due, and on its way to the Store. A negative deadline counts from now. Needs load,
-- take and give. `found` is the session that was found for it, where it names none, and `ref` what it replies to;
-- both are nil for what has nothing to do with a channel or a reply.
local function admit(id, session, channel, data, deadline, place, person, found, ref)
  local was = redis.call('SET', P..'msg:'..id, 'accepted', 'NX', 'GET')
  if was then return false, was end
  local ends = tonumber(deadline)
  if ends < 0 then ends = now - ends end
  local message = {'id', id, 'session', session, 'channel', channel, 'data', data, 'deadline', ends, 'person', person}
  if found or ref then
    for i, item in ipairs({'found', found or '', 'ref', ref or ''}) do message[12 + i] = item end
  end
  local e = redis.call('XADD', P..'inbox', '*', unpack(message))
  local opens = redis.call('ZADD', P..'due', 'NX', due_at(loaded(person, 1)), session) == 1
  redis.call('XADD', P..'archive', '*', 'kind', 'message', 'channel', channel, 'session', session,
    'id', id, 'data', data)
  if opens then
    local whole, given = pcall(give, session, e, message)
    if given == true then return e, 'accepted' end
    if not whole then redis.pcall('LREM', P..'given:'..session, 0, e) end  -- what is wrong there, a claim finds out
  end
  local list = 'mail:'
  if place ~= 'mail' then list = 'join:' end
  if place == 'front' then redis.call('LPUSH', P..list..session, e)
  else redis.call('RPUSH', P..list..session, e) end
  return e, 'accepted'
end
-- A reply to something of the turn that runs joins it; else it waits like any other message.
local function placed(session, place, reply)
  if place == 'kill' then return 'front' end
  if place ~= 'reply' then return place end
  local root = redis.call('HGET', P..'turn:'..session, 'root')
  if root and (reply == root or string.sub(reply, 1, #root + 1) == root..'.') then return 'join' end
  return 'mail'
end
-- What names a turn, a message that it answers, or a request of it, is for that turn alone.
local function meant(session, name)
  local root = redis.call('HGET', P..'turn:'..session, 'root')
  if not root then return false end
  if name == root or string.sub(name, 1, #root + 1) == root..'.' then return true end
  for _, e in ipairs(redis.call('LRANGE', P..'given:'..session, 0, -1)) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r and r[2][2] == name then return true end
  end
  return false
end
-- A stop for a message that waits takes it back: `by` answers for both.
local function take_back(session, name, by)
  for _, e in ipairs(redis.call('LRANGE', P..'mail:'..session, 0, -1)) do
    local r = redis.call('XRANGE', P..'inbox', e, e)[1]
    if r and r[2][2] == name then
      redis.call('LREM', P..'mail:'..session, 1, e)
      redis.call('XDEL', P..'inbox', e)
      loaded(r[2][12], -1)
      redis.call('SET', P..'msg:'..name, 'withdrawn:'..by, 'EX', 86400)
      if redis.call('EXISTS', P..'mail:'..session, P..'join:'..session, P..'given:'..session) == 0 then
        redis.call('ZREM', P..'due', session)
      end
      return
    end
  end
end
-- A plain yes or no answers the question that is open in its session: in a session of its own, since that one
-- may be what waits for it. Where no question is open it is a message like any other.
local function routed(session, place, reply, id)
  if place == 'aim' or place == 'add' then
    if meant(session, reply) then return session, place == 'aim' and 'front' or 'join' end
    if place == 'aim' then take_back(session, reply, id) end
    return 'apart:'..id, 'mail'  -- it stops nothing else, and is told at once what became of what it names
  end
  if place ~= 'word' then return session, placed(session, place, reply) end
  if redis.call('EXISTS', P..'asks:'..session) == 1 then return 'asks:'..session, 'mail' end
  return session, placed(session, reply ~= '' and 'reply' or 'mail', reply)
end
