-- A message that cannot be carried out goes to the dead letters, and on its way to the Store.
local function bury(reason, id, session, channel, data)
  redis.call('XADD', P..'dead', 'MAXLEN', '~', 10000, '*', 'reason', reason, 'id', id,
    'session', session, 'channel', channel, 'data', data)
  redis.call('XADD', P..'archive', '*', 'kind', 'dead', 'reason', reason, 'channel', channel,
    'session', session, 'id', id, 'data', data)
end
