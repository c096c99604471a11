-- The guard: how long a message's decision may take, and how near the memory limit it may work.
--
-- Owns the count hook, the clock behind it, and the only two functions of the sandbox that can
-- catch an error. It never touches messages or verdicts.
--
-- A count hook sees instructions, not time, and it does not run while one instruction works. So
-- three things act together:
--   * every `COUNT` instructions `watch` looks at the clock; near the memory limit, where a single
--     allocation may cost a full garbage collection, it looks every `COUNT_TIGHT`;
--   * library functions whose cost grows with their arguments `charge` it before they start;
--   * once a limit is hit the reason stays set, and `pcall` and `xpcall` raise it again, so no
--     script can catch it and go on. The runtime is then thrown away.
--
-- The clock is the CPU time of the process: a machine that is busy with other work must not make a
-- script fail, and asking the host for its clock would mean taking the GIL in the middle of a run.
-- (Work of the process's other threads counts too: a script may get a little less than its limit.)

local limits = ...

local clock, sethook, raise, protect = os.clock, debug.sethook, error, pcall
local collect, create = collectgarbage, coroutine.create

local COUNT <const> = limits.instructions_per_check
local COUNT_TIGHT <const> = limits.instructions_per_check_tight
local CHARGE_PER_CHECK <const> = limits.charge_per_check
local TIGHT_KB <const> = limits.tight_bytes // 1024
local GROSS <const> = limits.gross_overrun_factor
local NESTED_MAX <const> = limits.nested_pcalls_max
local MEMORY_PROBLEM <const> = "not enough memory"

-- `aborted` is why the running message was stopped. `current` and `end_part` are set by the runner:
-- the one tells one message of a batch from the next, the other ends the batch after this message.
-- The batch's time never stops a message: who stands at its end need not be who used it up.
local guard = { aborted = nil, kind = nil, gross = false, current = nil, end_part = nil }

local message_s, batch_s = 0, 0 -- the limits, in seconds
local seen, noted, message_began, batch_began -- messages the hook met, and what the clock said
local charged, tight, tight_kb, thread = 0, false, 0, nil

local function abort(kind, reason)
  guard.kind, guard.aborted = kind, reason
  raise(reason, 0)
end

local function look_at_the_clock()
  local now, message = clock(), guard.current()
  if noted ~= message then
    batch_began = batch_began or now -- in this order: the hook may come in between
    message_began = now
    noted = message
    return
  end
  local spent = now - message_began
  if spent > message_s then
    guard.gross = spent > message_s * GROSS
    abort("timeout", guard.time_problem)
  end
  if now - batch_began > batch_s then
    guard.end_part()
  end
end

local watch

local function tighten()
  tight = true
  sethook(thread, watch, "", COUNT_TIGHT)
end

function watch()
  if guard.aborted then
    raise(guard.aborted, 0)
  end
  if not tight and collect("count") > tight_kb then
    tighten()
  end
  local message = guard.current()
  if seen == message then
    look_at_the_clock()
  else
    seen = message -- most decisions end before the hook comes a second time
  end
end

-- Account for work that happens inside one instruction: roughly one unit per byte or element.
function guard.charge(units)
  charged = charged + units
  if charged >= CHARGE_PER_CHECK then
    charged = 0
    if units >= CHARGE_PER_CHECK and not tight then
      tighten()
    end
    look_at_the_clock()
  end
end

guard.look = look_at_the_clock

-- An error that passes n nested pcalls is raised n times, and each costs a look at everything
-- below: without a bound on n, that is where a stopped script would go on taking time.
local nested = 0

local function enter()
  if nested >= NESTED_MAX then
    raise("more than " .. NESTED_MAX .. " nested calls of pcall", 3)
  end
  nested = nested + 1
end

-- A fresh thread under the guard's eye. Scripts run in threads of their own so that an error can
-- be examined after the fact and a missing config value can be fetched in the middle of a run.
function guard.thread(body)
  thread, nested = create(body), 0
  sethook(thread, watch, "", tight and COUNT_TIGHT or COUNT)
  return thread
end

-- Called before each batch: the batch's time starts when the clock is first looked at.
function guard.batch(budget_s)
  seen, noted, batch_began, batch_s = nil, nil, nil, budget_s
  local needs_tight = collect("count") > tight_kb
  if needs_tight ~= tight then
    tight = needs_tight
    sethook(thread, watch, "", tight and COUNT_TIGHT or COUNT)
  end
end

function guard.spent_s()
  return batch_began and clock() - batch_began or 0
end

function guard.limit(timeout_ms)
  message_s = timeout_ms / 1000
  guard.time_problem = "took longer than " .. timeout_ms .. " ms"
  tight_kb = collect("count") + TIGHT_KB
  -- The host collects between batches, when there is enough to collect: a cycle costs the same
  -- whether it finds little or much. Until then only running out of memory starts one.
  collect("incremental", 1000, 0, 0)
end

local function settle(ok, ...)
  nested = nested - 1
  if ok then
    return true, ...
  end
  if guard.aborted then
    raise(guard.aborted, 0)
  end
  local problem = ...
  if problem == MEMORY_PROBLEM then
    abort("memory", MEMORY_PROBLEM)
  end
  return false, problem
end

function guard.pcall(body, ...)
  enter()
  return settle(protect(body, ...))
end

local function handled(handler, ok, problem, ...)
  if ok then
    return true, problem, ...
  end
  local _, answer = guard.pcall(handler, problem)
  return false, answer
end

-- The handler runs after the stack is unwound: there is no debug library to look at it with.
function guard.xpcall(body, handler, ...)
  enter()
  return handled(handler, settle(protect(body, ...)))
end

return guard
