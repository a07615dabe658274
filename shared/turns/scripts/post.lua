#!lua
-- Accept a message, keep it and publish it.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 channel  2 id  3 session  4 deadline  5 data  6 limit  7 place  8 reply  9 person  10 share  11 owner
--   12 way  13 bell
-- Returns {1, waiting, session} | {0, state} known | {-1, waiting} busy | {-2, theirs} too much of this person waits
--   | {-3, 0} the session is somebody else's | {-4, 0} there is no thread of that number
-- include: prelude load take give admit fits owned holds numbers threads

local channel, id, asked, deadline, data, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local kind, reply, person, share, owner = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local way, bell, found = way_of(ARGV[12]), ARGV[13], nil
local waiting = redis.call('XLEN', P..'inbox')
local fits, theirs = room(kind, waiting, limit, person, share)
if not fits then
  local was = redis.call('GET', P..'msg:'..id)
  if was then return {0, was} end
  if theirs then return {-2, theirs} end
  return {-1, waiting}
end
if kind == 'posted' then
  if not belongs(asked, owner) then return {-3, 0} end
  posted(way.trust, way.channel, way.surface, asked, way.reply)
  redis.call('PUBLISH', channel, data)
  return {1, waiting}
end
local named = kind == 'aim' or kind == 'add'
if named or way then
  if named and (not way or way.how == '') and not belongs(asked, owner) then return {-3, 0} end
  local was = redis.call('GET', P..'msg:'..id)
  if was then return {0, was} end
end
if way then
  local code
  code, asked, kind, reply, found = directed(way, kind, id, asked, reply, owner)
  if code < 0 then return {code, 0} end
end
local session, place = routed(asked, kind, reply, id)
if session == asked and not belongs(session, owner, kind == 'kill') then return {-3, 0} end
local live = way and redis.call('ZSCORE', P..'due', session)
if way then noted(way, asked, id) end
local e, was = admit(id, session, channel, data, deadline, place, person, found, way and reply)
if not e then return {0, was} end
if owner ~= '' then redis.call('SET', P..'at:'..id, asked, 'EX', 86400) end
if way and live and place ~= 'mail' then ring(bell, session) end
if kind == 'kill' then killed(session, bell, live) end
redis.call('PUBLISH', channel, data)
return {1, waiting, way and asked or ''}
