-- POST /api/v1/payments, each request under an Idempotency-Key of its own and with the next of the API keys, of which the
-- second argument is a list. What the requests share is written once, so that the load takes little of the processor that it
-- shares with the server.
local thread_number = 0
function setup(thread)
  thread:set("number", thread_number)
  thread_number = thread_number + 1
end
local body = '{"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart", "customer": {"name": "Rahima Khatun", "email": "rahima@example.com"}}'
function init(args)
  count = 0
  before, after = {}, ""
  for key in (args[2] or "sk_test_demo"):gmatch("[^,]+") do
    local whole = wrk.format("POST", "/api/v1/payments", {
      ["Authorization"] = "Bearer " .. key,
      ["Content-Type"] = "application/json",
      ["Idempotency-Key"] = "KEY",
    }, body)
    local from, to = whole:find("KEY", 1, true)
    before[#before + 1] = whole:sub(1, from - 1) .. (args[1] or "0") .. "-" .. number .. "-"
    after = whole:sub(to + 1)
  end
end
function request()
  count = count + 1
  return before[count % #before + 1] .. count .. after
end
