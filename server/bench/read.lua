-- GET of the path that is asked for, with the sandbox's key.
function request()
  return wrk.format("GET", nil, { ["Authorization"] = "Bearer sk_test_demo" })
end
