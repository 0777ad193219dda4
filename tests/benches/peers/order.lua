-- An order by its number, any of those that there are. What requests share is written once: the
-- generator has the processors together with those that it measures.
local before, after
init = function()
  before, after = wrk.format("GET", "/api/v2/buy/orders/#"):match("^(.-)#(.*)$")
end
request = function()
  return before .. string.format("%d", @first@ + math.random(0, @count@ - 1)) .. after
end
math.randomseed(os.time())
