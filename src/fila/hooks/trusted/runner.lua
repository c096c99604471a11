-- One script at work: loads it, feeds it batches, and reports to the host.
--
-- The host passes only strings and numbers, and calls
--   load(source)                 compile the script and run its main chunk
--   decide(batch, ...)           decide about a batch of messages
--   learn(key, value), resume()  answer a question about config, then go on
--   verdicts()                   after a failure: the script's line, and what was decided before
-- `load`, `decide` and `resume` answer with a code from `limits.codes` first:
--   done, spent_s, verdict...         every message is decided
--   part, spent_s, verdict...         enough for one answer, or for the time; the rest is to do
--   more, spent_s, verdict...         the next message has longer headers than were given
--   ask, key                          the script wants a config value
--   failed, spent_s, kind, text, gross   the next message failed; see `verdicts`
-- `spent_s` is 0 for scripts too fast to be worth a look at the clock.

local limits, guard, fila, cache, environment, verdict, hook, queue = ...

local unpack, sub, find, match = string.unpack, string.sub, string.find, string.match
local format, rep = string.format, string.rep
local spread, type, load, raise = table.unpack, type, load, error
local resume_thread, suspend, getinfo = coroutine.resume, coroutine.yield, debug.getinfo

local codes = limits.codes
local DONE <const>, PART <const>, MORE <const> = codes.done, codes.part, codes.more
local ASK <const>, FAILED <const> = codes.ask, codes.failed
local LONG_VERDICT_BYTES <const> = limits.known_bytes_max
local VERDICT_BYTES_MAX <const> = limits.verdict_bytes_per_answer
local HEADERS_MAX <const> = limits.headers_max
local TEXT_BYTES_MAX <const> = limits.problem_bytes_max
local OUT_OF_MEMORY <const> = "not enough memory"
local SOURCE = "=" .. hook

environment.fila = fila

-- The host looks this name up before each call, outside any protection: it must never have to be
-- allocated while memory is short.
limits.kept_alive = "debug"

local script, thread -- the hook function, and the thread it runs in
local batch, sizes, count, head_bytes = "", "", 0, 0 -- the batch being decided
local decided, verdicts = 0, {}
local long_verdict_bytes = LONG_VERDICT_BYTES -- below 0: the batch's time is used up
local config_version

local pack_verdict = verdict[hook]

---------------------------------------------------------------------------------------------------
-- Messages

-- The headers after their count, and where the bytes behind them start.
local function read_headers(pairs_count, at)
  if pairs_count == 1 then
    local key, value, stop = unpack(">s2s2", batch, at)
    return { [key] = value }, stop
  elseif pairs_count == 3 then
    local k1, v1, k2, v2, k3, v3, stop = unpack(">s2s2s2s2s2s2", batch, at)
    return { [k1] = v1, [k2] = v2, [k3] = v3 }, stop
  end
  local headers = {}
  if pairs_count > HEADERS_MAX then
    return headers, #batch + 2 -- as if cut off: the host knows what to do
  end
  for _ = 1, pairs_count do
    local key, value
    key, value, at = unpack(">s2s2", batch, at)
    headers[key] = value
  end
  return headers, at
end

local sizes_formats = {}

-- The lengths of the bodies, as a list.
local function read_sizes()
  local sizes_format = sizes_formats[count]
  if not sizes_format then
    sizes_format = ">" .. rep("I4", count)
    sizes_formats[count] = sizes_format
  end
  return { unpack(sizes_format, sizes) }
end

-- The loops below are the hot path: under a count hook every instruction costs, so they are plain
-- and a little longer. A message whose headers are cut off is read into the next one, and shows by
-- ending behind its own part, or as an error of `unpack` (see `cut_off`).
local loops = {}

function loops.on_enqueue()
  local at, long_bytes = 1, 0
  local batch, count, head_bytes, verdicts, unpack = batch, count, head_bytes, verdicts, unpack
  local sizes = read_sizes()
  for i = 1, count do
    local size = sizes[i]
    local next_at = at + (size < head_bytes and size or head_bytes)
    local pairs_count, stop = unpack(">I2", batch, at)
    local headers
    if pairs_count == 2 then
      local k1, v1, k2, v2
      k1, v1, k2, v2, stop = unpack(">s2s2s2s2", batch, stop)
      headers = { [k1] = v1, [k2] = v2 }
    else
      headers, stop = read_headers(pairs_count, stop)
    end
    if stop > next_at then
      return MORE
    end
    local payload_size = size - (stop - at) - 4
    local msg = { headers = headers, payload_size = payload_size, queue = queue }
    local packed = pack_verdict(script(msg))
    verdicts[i], decided = packed, i
    at = next_at
    if #packed > long_verdict_bytes then
      if long_verdict_bytes < 0 and i < count then
        return PART
      end
      long_bytes = long_bytes + #packed
      if long_bytes > VERDICT_BYTES_MAX and i < count then
        return PART
      end
    end
  end
  return DONE
end

function loops.on_failure()
  local at = 1
  local sizes = read_sizes()
  for i = 1, count do
    local size = sizes[i]
    local attempts, id, problem, body = unpack(">I4c36s2", batch, at)
    local next_at = body + (size < head_bytes and size or head_bytes)
    local pairs_count, stop = unpack(">I2", batch, body)
    local headers
    headers, stop = read_headers(pairs_count, stop)
    if stop > next_at then
      return MORE
    end
    local msg = {
      headers = headers,
      id = id,
      attempts = attempts,
      queue = queue,
      error = problem,
      payload_size = size - (stop - body) - 4,
    }
    verdicts[i], decided = pack_verdict(script(msg, problem)), i
    at = next_at
    if long_verdict_bytes < 0 and i < count then
      return PART
    end
  end
  return DONE
end

local decide_batch = loops[hook]

---------------------------------------------------------------------------------------------------
-- The thread

local function decide_forever()
  while true do
    suspend(decide_batch())
  end
end

-- Where the script itself was when its thread stopped: its own line, whoever raised the error; nil
-- if it had returned already, or had called what failed as its last act.
local function script_line()
  for level = 0, limits.levels_searched do
    local info = getinfo(thread, level, "Sl")
    if not info then
      return nil
    elseif info.source == SOURCE and info.currentline > 0 then
      return info.currentline
    end
  end
end

local function located(line, text)
  return line > 0 and format("%s:%d: %s", hook, line, text) or format("%s: %s", hook, text)
end

-- Not the script's error: it is not on the stack, and there were too few bytes to read.
local function cut_off(problem)
  return type(problem) == "string"
    and find(problem, "data string too short", 1, true)
    and not guard.kind
    and not script_line()
end

-- The same, or where the hook function begins; 0 if there is none of the script's own.
local function nearest_line()
  local line = script_line()
  if not line and script then
    local info = getinfo(script, "S")
    line = info.source == SOURCE and info.linedefined
  end
  return line or 0
end

local function describe(problem)
  if type(problem) ~= "string" then
    problem = "error object is a " .. type(problem) .. " value"
  end
  local text = sub(problem, 1, TEXT_BYTES_MAX)
  if find(text, hook .. ":", 1, true) == 1 then
    return text
  end
  text = match(text, "^%?:%-?%d+: (.*)") or text -- trusted code has no lines worth telling
  return located(nearest_line(), text)
end

local function failure(problem)
  if problem == OUT_OF_MEMORY then
    return FAILED, guard.spent_s(), "memory", problem, false -- no room to say more
  end
  local kind, text = guard.kind or "error", describe(problem)
  if kind == "error" then -- the script may go on with the next message, in a new thread
    thread = guard.thread(decide_forever)
  end
  return FAILED, guard.spent_s(), kind, text, guard.gross
end

local function go_on()
  local ok, code, key = resume_thread(thread)
  if not ok then
    if not cut_off(code) then
      return failure(code)
    end
    code, thread = MORE, guard.thread(decide_forever)
  elseif code == ASK then
    return ASK, key
  end
  return code, guard.spent_s(), spread(verdicts, 1, decided)
end

---------------------------------------------------------------------------------------------------
-- What the host calls

-- How the guard knows one message from the next without being told each time.
function guard.current()
  return decided
end

function guard.end_part()
  long_verdict_bytes = -1
end

local function load_script(source, budget_s)
  local chunk, problem = load(source, SOURCE, "t", environment)
  if not chunk then
    return FAILED, 0, "compile", sub(problem, 1, TEXT_BYTES_MAX), false
  end
  guard.batch(budget_s)
  thread = guard.thread(function()
    chunk()
    local defined = environment[hook]
    if type(defined) ~= "function" then
      raise(format("the script does not define a function %s(msg)", hook), 0)
    end
    script = defined
    thread = guard.thread(decide_forever)
    return DONE
  end)
  return go_on()
end

local function decide(new_batch, new_sizes, new_count, new_head_bytes, version, budget_s)
  batch, sizes, count, head_bytes, decided = new_batch, new_sizes, new_count, new_head_bytes, 0
  long_verdict_bytes = LONG_VERDICT_BYTES
  if version ~= config_version then
    config_version = version
    cache.forget()
  end
  guard.batch(budget_s)
  return go_on()
end

return {
  load = load_script,
  decide = decide,
  resume = go_on,
  learn = cache.learn,
  verdicts = function()
    return located(nearest_line(), OUT_OF_MEMORY), spread(verdicts, 1, decided)
  end,
}
