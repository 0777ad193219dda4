-- The same quote again and again: each answer is a new one.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"currencyPair":"BTC-EUR","paymentMethod":"creditCard","fiatAmount":250}'
