-- Lua patterns with a known cost: find, match, gmatch and gsub.
--
-- The standard matcher backtracks inside a single instruction, out of the guard's sight. Each
-- pattern is therefore read once, and the length of subject is worked out up to which the standard
-- matcher must finish within `pattern_steps_max` steps whatever the subject. Longer subjects go
-- through `matcher.lua`: same results, slower, and it can be stopped.
--
-- One difference from the standard library: a malformed pattern is an error at once, even where
-- matching would never have reached the malformed part.

local limits, guard, matcher = ...

local c_find, c_match, c_gmatch, c_gsub = string.find, string.match, string.gmatch, string.gsub
local byte, format, sub, concat = string.byte, string.format, string.sub, table.concat
local tointeger, unpack, type, raise, tostring = math.tointeger, table.unpack, type, error, tostring
local floor, maxinteger = math.floor, math.maxinteger
local charge = guard.charge
local new_matcher, search, capture = matcher.new, matcher.search, matcher.capture
local captures, captures_if_any, join = matcher.captures, matcher.captures_if_any, matcher.join

local STEPS_MAX <const> = limits.pattern_steps_max
local STEPS_FREE <const> = limits.pattern_steps_free
local PATTERN_BYTES_MAX <const> = limits.pattern_bytes_max
local PROGRAMS_MAX <const> = limits.patterns_kept_max
local CAPTURES_MAX <const> = 32

local pattern = {}

---------------------------------------------------------------------------------------------------
-- Reading a pattern

-- Where the single item that starts at `at` ends (exclusive).
local function item_end(text, at)
  local first = sub(text, at, at)
  if first == "%" then
    if at == #text then
      raise("malformed pattern (ends with '%')", 0)
    end
    return at + 2
  elseif first ~= "[" then
    return at + 1
  end
  local i = at + 1
  if sub(text, i, i) == "^" then
    i = i + 1
  end
  repeat -- the first character of a set is a member even if it is a bracket
    if i > #text then
      raise("malformed pattern (missing ']')", 0)
    end
    i = i + (sub(text, i, i) == "%" and 2 or 1)
  until sub(text, i, i) == "]"
  return i + 1
end

local readers = {}

readers["("] = function(program, text, at)
  local captures = program.captures + 1
  if captures > CAPTURES_MAX then
    raise("too many captures", 0)
  end
  program.captures = captures
  if sub(text, at + 1, at + 1) == ")" then
    program.closed[captures] = true
    return { op = "position" }, at + 2
  end
  program.open[#program.open + 1] = captures
  return { op = "open" }, at + 1
end

readers[")"] = function(program, _, at)
  local open = program.open
  local capture = open[#open]
  if not capture then
    raise("invalid pattern capture", 0)
  end
  open[#open], program.closed[capture] = nil, true
  return { op = "close" }, at + 1
end

readers["%b"] = function(program, text, at)
  if at + 3 > #text then
    raise("malformed pattern (missing arguments to '%b')", 0)
  end
  program.loops = program.loops + 1
  return { op = "balance", source = "^" .. sub(text, at, at + 3) }, at + 4
end

readers["%f"] = function(_, text, at)
  if sub(text, at + 2, at + 2) ~= "[" then
    raise("missing '[' after '%f' in pattern", 0)
  end
  local stop = item_end(text, at + 2)
  return { op = "frontier", source = "^" .. sub(text, at + 2, stop - 1) }, stop
end

local function read_reference(program, text, at)
  local capture = byte(text, at + 1) - 48
  if not program.closed[capture] then
    raise("invalid capture index %" .. capture .. " in pattern", 0)
  end
  program.loops = program.loops + 1
  return { op = "reference", capture = capture }, at + 2
end

local repeats = { ["*"] = "most", ["+"] = "most", ["-"] = "least", ["?"] = "maybe" }

local function read_single(program, text, at)
  local stop = item_end(text, at)
  local suffix = sub(text, stop, stop)
  local item = sub(text, at, stop - 1)
  if c_find(item, "^[^%w%.%%%[]$") then
    item = "%" .. item -- alone, a '^' or '$' would be an anchor
  end
  local single = "^" .. item
  program.width = program.width + (stop - at)
  local op = repeats[suffix]
  if not op then
    return { op = "single", source = single, plain = item }, stop
  end
  if op == "maybe" then
    program.choices = program.choices + 1
  else
    program.loops = program.loops + 1
  end
  local node = { op = op, source = single, run = single .. "*", least = suffix == "+" and 1 or 0 }
  if suffix == "+" then
    node.plain = item
  end
  return node, stop + 1
end

-- How long a subject may be for the standard matcher to need at most `steps` steps.
local function subject_max(program, steps)
  local exponent = program.loops + (program.anchored and 0 or 1)
  local per_try = (#program + program.width) * 2.0 ^ program.choices
  if exponent == 0 then
    return per_try <= steps and maxinteger or -1
  end
  return floor((steps / per_try) ^ (1 / exponent)) - 1
end

local function read(text, may_anchor)
  if #text > PATTERN_BYTES_MAX then
    raise("pattern too long (limit " .. PATTERN_BYTES_MAX .. " bytes)", 0)
  end
  local program = { captures = 0, loops = 0, choices = 0, width = 0, open = {}, closed = {} }
  local at = 1
  program.anchored = may_anchor and sub(text, 1, 1) == "^"
  if program.anchored then
    at = 2
  end
  while at <= #text do
    local first = sub(text, at, at)
    local reader = readers[first] or (first == "%" and readers[sub(text, at, at + 1)])
    if first == "$" and at == #text then
      program[#program + 1], at = { op = "end" }, at + 1
    elseif reader then
      program[#program + 1], at = reader(program, text, at)
    elseif first == "%" and c_find(text, "^%%%d", at) then
      program[#program + 1], at = read_reference(program, text, at)
    else
      program[#program + 1], at = read_single(program, text, at)
    end
  end
  if #program.open > 0 then
    raise("unfinished capture", 0)
  end
  program[#program + 1] = { op = "done" }
  program.lead = program[1].plain -- what a match must start with, to skip to it
  program.standard_max = subject_max(program, STEPS_MAX)
  program.free_max = subject_max(program, STEPS_FREE)
  return program
end

local kept, kept_count = { [true] = {}, [false] = {} }, 0

local function program_of(text, may_anchor)
  local program = kept[may_anchor][text]
  if not program then
    if kept_count >= PROGRAMS_MAX then
      kept, kept_count = { [true] = {}, [false] = {} }, 0
    end
    program = read(text, may_anchor)
    kept[may_anchor][text], kept_count = program, kept_count + 1
  end
  return program
end

---------------------------------------------------------------------------------------------------
-- Arguments

local function text_of(value, position, name)
  local kind = type(value)
  if kind == "string" then
    return value
  elseif kind == "number" then
    return tostring(value)
  end
  local got = value == nil and "no value" or kind
  raise(format("bad argument #%d to '%s' (string expected, got %s)", position, name, got), 3)
end

local function start_of(init, subject, name)
  if init == nil then
    return 1
  end
  local at = tointeger(init)
  if not at then
    raise(format("bad argument #3 to '%s' (integer expected)", name), 3)
  end
  if at > 0 then
    return at
  elseif at == 0 or at < -#subject then
    return 1
  end
  return #subject + at + 1
end

-- True if the standard matcher is safe for this subject; it is charged for what it may need.
local function standard(program, subject)
  local size = #subject
  if size <= program.free_max then
    return true
  end
  guard.look()
  return size <= program.standard_max
end

---------------------------------------------------------------------------------------------------
-- The four functions

-- Searching a long text for a long text is quadratic in the worst case: go from one occurrence of
-- the first byte to the next, comparing under the guard's eye.
local function find_plain(subject, text, at)
  if #subject * #text <= STEPS_MAX then
    charge(#subject * #text)
    return c_find(subject, text, at, true)
  end
  local lead, size = sub(text, 1, 1), #text
  at = c_find(subject, lead, at, true)
  while at and at + size - 1 <= #subject do
    charge(size)
    if sub(subject, at, at + size - 1) == text then
      return at, at + size - 1
    end
    at = c_find(subject, lead, at + 1, true)
  end
  return nil
end

function pattern.find(s, p, init, plain)
  s, p = text_of(s, 1, "find"), text_of(p, 2, "find")
  local at = start_of(init, s, "find")
  if at > #s + 1 then
    return nil
  end
  if plain or not c_find(p, "[%^%$%*%+%?%.%(%[%%%-]") then
    return find_plain(s, p, at)
  end
  local program = program_of(p, true)
  if standard(program, s) then
    return c_find(s, p, at)
  end
  local m = new_matcher(program, s)
  local from, stop = search(m, at)
  if stop then
    return from, stop - 1, captures_if_any(m)
  end
  return nil
end

function pattern.match(s, p, init)
  s, p = text_of(s, 1, "match"), text_of(p, 2, "match")
  local at = start_of(init, s, "match")
  if at > #s + 1 then
    return nil
  end
  local program = program_of(p, true)
  if standard(program, s) then
    return c_match(s, p, at)
  end
  local m = new_matcher(program, s)
  local from, stop = search(m, at)
  if stop then
    return captures(m, from, stop)
  end
  return nil
end

function pattern.gmatch(s, p, init)
  s, p = text_of(s, 1, "gmatch"), text_of(p, 2, "gmatch")
  local at = start_of(init, s, "gmatch")
  local program = program_of(p, false)
  if standard(program, s) then
    return c_gmatch(s, p, at)
  end
  local last
  return function()
    local m = new_matcher(program, s)
    while at <= #s + 1 do
      local from, stop = search(m, at)
      if not stop then
        at = #s + 2
        return nil
      elseif stop ~= last then
        at, last = stop, stop
        return captures(m, from, stop)
      end
      at = from + 1 -- an empty match where the last one ended
    end
    return nil
  end
end

local function expand(template, m, from, stop)
  return (c_gsub(template, "%%(.?)", function(mark)
    if mark == "%" then
      return "%"
    end
    local level = tointeger(mark)
    if not level then
      raise("invalid use of '%' in replacement string", 0)
    elseif level == 0 or (level == 1 and m.level == 0) then
      return sub(m.subject, from, stop - 1)
    elseif level > m.level then
      raise("invalid capture index %" .. level .. " in replacement string", 0)
    end
    return tostring(capture(m, level))
  end))
end

local function replacement(repl, kind, m, from, stop)
  local value
  if kind == "string" then
    charge(#repl)
    return expand(repl, m, from, stop)
  elseif kind == "table" then
    value = repl[(captures(m, from, stop))]
  else
    value = repl(captures(m, from, stop))
  end
  if not value then
    return sub(m.subject, from, stop - 1)
  end
  local got = type(value)
  if got ~= "string" and got ~= "number" then
    raise("invalid replacement value (a " .. got .. ")", 0)
  end
  return value
end

local function gsub_here(program, s, repl, kind, count_max)
  local m, parts, done = new_matcher(program, s), {}, 0
  local at, copied, last = 1, 1, nil
  while done < count_max do
    local from, stop = search(m, at)
    if not stop then
      break
    end
    if stop == last and from == stop then -- an empty match where the last one ended
      at = from + 1
    else
      parts[#parts + 1] = sub(s, copied, from - 1)
      parts[#parts + 1] = replacement(repl, kind, m, from, stop)
      done, at, copied, last = done + 1, stop, stop, stop
    end
    if program.anchored or at > #s + 1 then
      break
    end
  end
  parts[#parts + 1] = sub(s, copied)
  return join(parts), done
end

function pattern.gsub(s, p, repl, n)
  s, p = text_of(s, 1, "gsub"), text_of(p, 2, "gsub")
  local kind = type(repl)
  if kind == "number" then
    repl, kind = tostring(repl), "string"
  elseif kind ~= "string" and kind ~= "table" and kind ~= "function" then
    local got = repl == nil and "no value" or kind
    raise("bad argument #3 to 'gsub' (string/function/table expected, got " .. got .. ")", 2)
  end
  local count_max = #s + 1
  if n ~= nil then
    count_max = tointeger(n) or raise("bad argument #4 to 'gsub' (integer expected)", 2)
  end
  local program = program_of(p, true)
  -- A replacement function is the script's own code: it must never run inside a C function.
  if kind ~= "function" and standard(program, s) then
    return c_gsub(s, p, repl, count_max)
  end
  return gsub_here(program, s, repl, kind, count_max)
end

return pattern
