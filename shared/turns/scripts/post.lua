#!lua
-- Accept a message, keep it and publish it.
-- KEYS  1 prefix of the agent's keys
-- ARGV  1 channel  2 id  3 session  4 deadline  5 data  6 limit  7 place  8 reply  9 person  10 share  11 owner
-- Returns {1, waiting} | {0, state} known | {-1, waiting} busy | {-2, theirs} too much of this person waits
--   | {-3, 0} the session is somebody else's
-- include: prelude load take give admit fits owned

local channel, id, asked, deadline, data, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local kind, reply, person, share, owner = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local waiting = redis.call('XLEN', P..'inbox')
local fits, theirs = room(kind, waiting, limit, person, share)
if not fits then
  local was = redis.call('GET', P..'msg:'..id)
  if was then return {0, was} end
  if theirs then return {-2, theirs} end
  return {-1, waiting}
end
local named = kind == 'aim' or kind == 'add'
if named then
  if not belongs(asked, owner) then return {-3, 0} end
  local was = redis.call('GET', P..'msg:'..id)
  if was then return {0, was} end
end
local session, place = routed(asked, kind, reply, id)
if session == asked and not belongs(session, owner) then return {-3, 0} end
local e, was = admit(id, session, channel, data, deadline, place, person)
if not e then return {0, was} end
redis.call('PUBLISH', channel, data)
return {1, waiting}
