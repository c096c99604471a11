-- What a script's answer means. Each function takes the value a hook returned and gives back one
-- string in the host's layout, or raises a message that says what is wrong with the answer.
--
--   assignment   u32 weight, string fairness_key, then each throttle key as a string
--   failure      u8 dead letter (0 or 1), u64 delay_ms
--
-- Strings have a u16 length; numbers are big-endian. Wrong types count as absent; values that are
-- of the right type but cannot be used are a failure.

local limits = ...

local pack, format, utf8_len = string.pack, string.format, utf8.len
local type, tonumber, raise, next = type, tonumber, error, next
local math_type, tointeger, floor = math.type, math.tointeger, math.floor

local WEIGHT_MAX <const> = limits.weight_max
local DELAY_MS_MAX <const> = limits.delay_ms_max
local FAIRNESS_KEY_BYTES_MAX <const> = limits.fairness_key_bytes_max
local THROTTLE_KEY_BYTES_MAX <const> = limits.throttle_key_bytes_max
local THROTTLE_KEYS_MAX <const> = limits.throttle_keys_max
local NUMBER_BYTES_MAX <const> = limits.number_bytes_max
local KNOWN_BYTES_MAX <const> = limits.known_bytes_max
local KNOWN_MAX <const> = limits.known_max
local UNKNOWN_MAX <const> = limits.unknown_max

local function refuse(...)
  raise(format(...), 0)
end

-- A number as a key: 7 and 7.0 are the same tenant.
local function number_text(n, what)
  if n ~= n or n - n ~= 0 then
    refuse("%s is not a finite number", what)
  end
  local whole = tointeger(n)
  return whole and format("%d", whole) or format("%.14g", n)
end

local function check_text(text, what, bytes_max)
  if #text > bytes_max then
    refuse("%s is %d bytes long (limit %d)", what, #text, bytes_max)
  elseif not utf8_len(text) then
    refuse("%s is not valid UTF-8", what)
  end
end

-- A number, or the number a string spells; nil for anything else.
local function numeric(value, what)
  if type(value) == "string" and #value <= NUMBER_BYTES_MAX then
    value = tonumber(value)
  end
  if type(value) ~= "number" then
    return nil
  elseif value ~= value then
    refuse("%s is not a number (NaN)", what)
  end
  return value
end

local function clamped(value, least, most)
  if value <= least then
    return least
  elseif value >= most then
    return most
  end
  return math_type(value) == "integer" and value or floor(value)
end

local function throttle_key(value)
  local kind = type(value)
  if kind == "number" then
    value = number_text(value, "a throttle key")
  elseif kind ~= "string" or value == "" then
    return nil
  end
  check_text(value, "a throttle key", THROTTLE_KEY_BYTES_MAX)
  return value
end

local function throttle_part(list)
  local keys, seen, only = nil, nil, nil
  for index, value in next, list do
    if value == only or math_type(index) ~= "integer" then
      goto continue
    end
    local key = throttle_key(value)
    if not key or key == only then
      goto continue
    elseif not only then
      only = key
      goto continue
    elseif not keys then
      keys, seen = { only }, { [only] = true }
    end
    if not seen[key] then
      keys[#keys + 1], seen[key] = key, true
      if #keys > THROTTLE_KEYS_MAX then
        refuse("more than %d throttle keys", THROTTLE_KEYS_MAX)
      end
    end
    ::continue::
  end
  if not keys then
    return only and pack(">s2", only) or ""
  end
  local packed = ""
  for i = 1, #keys do
    packed = packed .. pack(">s2", keys[i])
  end
  return packed
end

-- Most messages of a queue get one of a few assignments: those are remembered, by weight, fairness
-- key and only throttle key as the script gave them, and need no second check. NONE stands for a
-- field that was left out. With more assignments than there is room for, remembering each would
-- cost more than it saves: after so many unknown ones the memory begins anew, not at once.
local known, known_count, unknown_count = {}, 0, 0
local NONE <const> = false

local function can_be_remembered(value)
  local kind = type(value)
  return value == NONE or kind == "number" or kind == "string" and #value <= KNOWN_BYTES_MAX
end

local function remember(weight, key, throttle, packed)
  if known_count >= KNOWN_MAX then
    unknown_count = unknown_count + 1
    if unknown_count < UNKNOWN_MAX then
      return
    end
    known, known_count, unknown_count = {}, 0, 0
  end
  if
    #packed > KNOWN_BYTES_MAX
    or not (can_be_remembered(weight) and can_be_remembered(key) and can_be_remembered(throttle))
  then
    return
  end
  local by_key = known[weight] or {}
  local by_throttle = by_key[key] or {}
  known[weight], by_key[key], by_throttle[throttle] = by_key, by_throttle, packed
  known_count = known_count + 1
end

local verdict = {}

local function read_assignment(answer)
  local key, weight, list = answer.fairness_key, answer.weight, answer.throttle_keys
  local kind = type(key)
  if kind == "number" then
    key = number_text(key, "fairness_key")
  elseif kind ~= "string" or key == "" then
    key = "default"
  else
    check_text(key, "fairness_key", FAIRNESS_KEY_BYTES_MAX)
  end
  if weight == nil then
    weight = 1
  else
    weight = clamped(numeric(weight, "weight") or 1, 1, WEIGHT_MAX)
  end
  local packed = pack(">I4s2", weight, key)
  if type(list) == "table" then
    return packed .. throttle_part(list)
  end
  return packed
end

function verdict.on_enqueue(answer)
  if type(answer) ~= "table" then
    refuse("on_enqueue must return a table, got %s", type(answer))
  end
  local key, weight, list = answer.fairness_key or NONE, answer.weight or 1, answer.throttle_keys
  local by_key = known[weight]
  local by_throttle = by_key and by_key[key]
  local throttle = NONE
  if list then
    throttle = nil
    if type(list) == "table" then
      throttle = list[1]
      if throttle ~= nil and next(list, 1) ~= nil then
        throttle = nil -- more than one
      end
    end
  end
  local packed = by_throttle and by_throttle[throttle]
  if not packed then
    packed = read_assignment(answer)
    remember(weight, key, throttle, packed)
  end
  return packed
end

function verdict.on_failure(answer)
  if type(answer) ~= "table" then
    refuse("on_failure must return a table, got %s", type(answer))
  end
  local action = answer.action
  if action == "dlq" then
    return pack(">BI8", 1, 0)
  elseif type(action) == "string" and action ~= "retry" then
    refuse('action must be "retry" or "dlq"')
  end
  local delay_ms = numeric(answer.delay_ms, "delay_ms") or 0
  return pack(">BI8", 0, clamped(delay_ms, 0, DELAY_MS_MAX))
end

return verdict
