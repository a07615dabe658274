-- What every script begins with: the prefix of the agent's keys, and the server's clock in milliseconds.
local P = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
