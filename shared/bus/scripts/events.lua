#!lua
-- Publish what happened, and keep it for an hour, the newest 2,000: all that was gathered in one round trip.
-- KEYS  1 stream that keeps the events
-- ARGV  1 channel, then the events
-- Returns how many they were

for i = 2, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', 2000, '*', 'data', ARGV[i])
  redis.call('PUBLISH', ARGV[1], ARGV[i])
end
redis.call('EXPIRE', KEYS[1], 3600)
return #ARGV - 1
