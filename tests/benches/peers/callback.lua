-- What a callback looks like to its receiver.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["webhook-id"] = "019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70"
wrk.headers["webhook-timestamp"] = "1772366400"
wrk.headers["webhook-signature"] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
wrk.body = '{"type":"order.completed","timestamp":"2026-03-01T12:00:00Z","data":{"orderId":1742980455013377,"partnerOrderIdentifier":"order-7","status":"completed"}}'
