-- Notes that an edge lives, and tells how many do.
-- KEYS: the edges, each with the time of this server, in microseconds, at which it was here last. ARGV: the edge, and the
-- time after which one that has not come back counts as gone, in milliseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2] * 1000))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
