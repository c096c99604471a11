-- The `fila` table of a script: runtime config and the helpers for common policies.
--
-- Config values are kept until the broker says that config changed. A value not yet known is asked
-- for by suspending the script's thread: the host fetches it and goes on. No object of the host
-- ever enters this runtime.

local limits, guard, ASK = ...

local sub, find, utf8_len = string.sub, string.find, utf8.len
local type, tostring, tonumber, raise, next = type, tostring, tonumber, error, next
local suspend, random, floor, tointeger = coroutine.yield, math.random, math.floor, math.tointeger
local charge = guard.charge

local ENTRIES_MAX <const> = limits.config_entries_max
local BYTES_MAX <const> = limits.config_bytes_max
local JITTER <const> = 0.25

local config, entries, bytes = {}, 0, 0

local fila, helpers = {}, {}
fila.helpers = helpers

function fila.get(key)
  local kind = type(key)
  if kind == "number" then
    key = tostring(key)
  elseif kind ~= "string" then
    raise("fila.get needs a string key, got " .. kind, 2)
  elseif #key > limits.config_key_bytes_max or not utf8_len(key) then
    return nil -- no config key is like that
  end
  local value = config[key]
  if value == nil then
    suspend(ASK, key)
    value = config[key]
  end
  return value or nil
end

local function number(value, name, default)
  if value == nil and default then
    return default
  end
  local n = tonumber(value)
  if not n or n ~= n then
    raise(name .. " must be a number, got " .. type(value), 3)
  end
  return n
end

-- base_ms, then twice as long after each further failure, each spread by a quarter either way;
-- never above max_ms.
function helpers.exponential_backoff(attempts, base_ms, max_ms)
  attempts = number(attempts, "attempts")
  base_ms = number(base_ms, "base_ms", limits.backoff_base_ms)
  max_ms = number(max_ms, "max_ms", limits.backoff_max_ms)
  local doublings = attempts > 1 and attempts - 1 or 0
  local delay = base_ms * 2.0 ^ (doublings < 64 and doublings or 64)
  delay = delay * (1 - JITTER + 2 * JITTER * random())
  if delay > max_ms then
    delay = max_ms
  end
  if delay < 0 then
    delay = 0
  end
  return tointeger(floor(delay)) or limits.delay_ms_max
end

local function headers_of(msg)
  local headers = type(msg) == "table" and msg.headers
  if type(headers) ~= "table" then
    raise("the first argument must be msg", 3)
  end
  return headers
end

function helpers.tenant_route(msg, header_name)
  local value = headers_of(msg)[header_name or "tenant_id"]
  return { fairness_key = value or "default" }
end

-- One pattern with its {placeholders} filled in, or nil if a header is missing.
local function fill(text, headers)
  local filled, at = "", 1
  while true do
    charge(#text)
    local open = find(text, "{", at, true)
    local close = open and find(text, "}", open, true)
    if not close then
      return filled .. sub(text, at)
    end
    local value = headers[sub(text, open + 1, close - 1)]
    if type(value) ~= "string" then
      return nil
    end
    filled, at = filled .. sub(text, at, open - 1) .. value, close + 1
  end
end

function helpers.rate_limit_keys(msg, patterns)
  local headers, keys = headers_of(msg), {}
  if type(patterns) ~= "table" then
    raise("rate_limit_keys needs a list of patterns", 2)
  end
  for _, text in next, patterns do
    local key = type(text) == "string" and fill(text, headers)
    if key then
      keys[#keys + 1] = key
    end
  end
  return keys
end

function helpers.max_retries(attempts, max)
  if number(attempts, "attempts") < number(max, "max") then
    return { action = "retry" }
  end
  return { action = "dlq" }
end

local cache = {}

function cache.learn(key, value)
  local size = #key + (value and #value or 0)
  if entries >= ENTRIES_MAX or bytes + size > BYTES_MAX then
    cache.forget()
  end
  config[key], entries, bytes = value or false, entries + 1, bytes + size
end

function cache.forget()
  config, entries, bytes = {}, 0, 0
end

return fila, cache
