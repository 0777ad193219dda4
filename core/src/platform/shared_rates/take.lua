-- Takes from buckets that edges share, and tells what each holds. A bucket is the time of this server, in
-- microseconds, from which it is full again; one that is full is not there.
-- KEYS: the buckets. ARGV: for each the time that was taken, the least time it must want to be full (0: whatever
-- it is), and the most that it may want before what was taken, all in microseconds.
-- Answers with the time that each wants to be full.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local backlogs = {}
for i, key in ipairs(KEYS) do
    local taken, least, most = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
    local full_at = math.max(tonumber(redis.call('GET', key) or 0), now + least)
    full_at = math.min(full_at, now + most) + taken
    if taken > 0 or least > 0 then
        redis.call('SET', key, string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
    end
    backlogs[i] = full_at - now
end
return backlogs
