-- POST /api/v1/payments, each request under an Idempotency-Key of its own.
local thread_number = 0
function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end
function init(args)
  count = 0
  stamp = args[1] or "0"
end
local body = '{"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart", "customerName": "Rahima Khatun", "customerEmail": "rahima@example.com"}'
function request()
  count = count + 1
  return wrk.format("POST", "/api/v1/payments", {
    ["Authorization"] = "Bearer sk_test_demo",
    ["Content-Type"] = "application/json",
    ["Idempotency-Key"] = stamp .. "-" .. number .. "-" .. count,
  }, body)
end
function response(status)
  if status ~= 201 then bad = (bad or 0) + 1; if bad < 4 then print("status " .. status) end end
end
