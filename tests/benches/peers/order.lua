-- An order by its number, any of those that there are.
math.randomseed(os.time())
request = function()
  return wrk.format("GET", "/api/v2/buy/orders/" .. string.format("%d", @first@ + math.random(0, @count@ - 1)))
end
