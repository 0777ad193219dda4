-- The same read as each of these partners in turn.
local requests, turn = {}, 0
init = function()
  for key in io.lines("@keys@") do
    wrk.headers["x-api-key"] = key
    requests[#requests + 1] = wrk.format("GET")
  end
end
request = function()
  turn = turn % #requests + 1
  return requests[turn]
end
