-- What a script can see: the functions of its environment.
--
-- Everything here is either free of side effects and constant in cost, or bounded and charged to
-- the guard. What is missing is missing on purpose: io, os, debug, package, require, load, dofile,
-- coroutine, collectgarbage, print, getmetatable, setmetatable, string.dump, string.pack and its
-- kin, math.randomseed, and every bridge to the host.
--
-- Without setmetatable there is no __gc, __close, __index or __mode; without coroutine there is
-- only one way to catch an error, and the guard owns it.

local limits, guard, pattern, join = ...

local byte, char, format = string.byte, string.char, string.format
local len, rep, sub = string.len, string.rep, string.sub
local lower, upper, reverse = string.lower, string.upper, string.reverse
local c_find, c_gsub = string.find, string.gsub
local insert, move, remove = table.insert, table.move, table.remove
local pack, unpack = table.pack, table.unpack
local type, tostring, select, raise = type, tostring, select, error
local tointeger = math.tointeger
local charge = guard.charge

local STRING_BYTES_MAX <const> = limits.string_bytes_max
local FORMAT_BYTES_MAX <const> = limits.format_bytes_max
local NUMBER_BYTES_MAX <const> = limits.number_bytes_max
local ELEMENTS_MAX <const> = limits.elements_max
local RESULTS_MAX <const> = limits.results_max
local INTEGER_COST <const> = 4 -- units per table element moved, next to one per byte copied

local function complain(position, name, expected, value)
  local got = value == nil and "no value" or type(value)
  raise(format("bad argument #%d to '%s' (%s expected, got %s)", position, name, expected, got), 3)
end

-- The number of elements from `first` to `last`, refused beyond `most`; integers may overflow.
local function span(first, last, most, what)
  if first > last then
    return 0
  end
  local count = last - first + 1
  if count <= 0 or count > most then
    raise("too many " .. what .. " (limit " .. most .. ")", 3)
  end
  return count
end

local function is_text(value)
  local kind = type(value)
  return kind == "string" or kind == "number"
end

-- The address in the standard text of a table or function is the host's business.
local function safe_tostring(value)
  local kind = type(value)
  if kind == "string" then
    return value
  elseif kind == "number" or kind == "boolean" or kind == "nil" then
    return tostring(value)
  end
  return kind
end

---------------------------------------------------------------------------------------------------
-- string

local safe_string = {
  char = char,
  len = len,
  find = pattern.find,
  match = pattern.match,
  gmatch = pattern.gmatch,
  gsub = pattern.gsub,
}

local function charged(name, f)
  return function(s)
    if not is_text(s) then
      complain(1, name, "string", s)
    end
    charge(len(s))
    return f(s)
  end
end

safe_string.lower = charged("lower", lower)
safe_string.upper = charged("upper", upper)
safe_string.reverse = charged("reverse", reverse)

function safe_string.sub(s, i, j)
  if not is_text(s) then
    complain(1, "sub", "string", s)
  elseif type(i) ~= "number" then
    complain(2, "sub", "number", i)
  elseif j ~= nil and type(j) ~= "number" then
    complain(3, "sub", "number", j)
  end
  return sub(s, i, j or -1)
end

function safe_string.rep(s, n, separator)
  local count = tointeger(n)
  if not is_text(s) then
    complain(1, "rep", "string", s)
  elseif not count then
    complain(2, "rep", "integer", n)
  elseif separator ~= nil and not is_text(separator) then
    complain(3, "rep", "string", separator)
  end
  separator = separator or ""
  local each = len(s) + len(separator)
  if count <= 0 or each == 0 then
    return ""
  elseif count > STRING_BYTES_MAX or each * count > STRING_BYTES_MAX then
    raise("resulting string too large (limit " .. STRING_BYTES_MAX .. " bytes)", 2)
  end
  charge(each * count)
  return rep(s, count, separator)
end

-- Refuses to spread more than RESULTS_MAX bytes of `s` over the stack.
local function check_slice(s, i, j)
  local size = len(s)
  local first = i < 0 and size + i + 1 or i
  local last = j < 0 and size + j + 1 or j
  charge(span(first > 1 and first or 1, last < size and last or size, RESULTS_MAX, "bytes at once"))
end

function safe_string.byte(s, i, j)
  if not is_text(s) then
    complain(1, "byte", "string", s)
  end
  i = i or 1
  j = j or i
  if not tointeger(i) or not tointeger(j) then
    raise("bad argument to 'byte' (integer expected)", 2)
  elseif i ~= j then
    check_slice(s, i, j)
  end
  return byte(s, i, j)
end

function safe_string.format(template, ...)
  if not is_text(template) then
    complain(1, "format", "string", template)
  end
  template = tostring(template)
  if #template > FORMAT_BYTES_MAX then
    raise("format string too long (limit " .. FORMAT_BYTES_MAX .. " bytes)", 2)
  end
  if c_find(template, "p", 1, true) and c_find(c_gsub(template, "%%%%", ""), "%%[^%a%%]*p") then
    raise("invalid conversion '%p' to 'format'", 2)
  end
  local values = pack(...)
  for i = 1, values.n do
    local value = values[i]
    local kind = type(value)
    if kind == "string" then
      charge(#value)
    elseif kind ~= "number" and kind ~= "boolean" and kind ~= "nil" then
      values[i] = kind
    end
  end
  return format(template, unpack(values, 1, values.n))
end

---------------------------------------------------------------------------------------------------
-- table

local safe_table = { pack = pack }

local function want_table(value, name)
  if type(value) ~= "table" then
    complain(1, name, "table", value)
  end
end

function safe_table.insert(...)
  if select("#", ...) == 3 then
    local list, at = ...
    want_table(list, "insert")
    if type(at) == "number" and at <= #list then
      charge(INTEGER_COST * (#list - at + 1))
    end
  end
  return insert(...)
end

function safe_table.remove(...)
  if select("#", ...) == 2 then
    local list, at = ...
    want_table(list, "remove")
    if type(at) == "number" and at <= #list then
      charge(INTEGER_COST * (#list - at + 1))
    end
  end
  return remove(...)
end

function safe_table.concat(list, separator, i, j)
  want_table(list, "concat")
  if separator ~= nil and not is_text(separator) then
    complain(2, "concat", "string", separator)
  end
  local first, last = tointeger(i or 1), tointeger(j or #list)
  if not first or not last then
    raise("bad argument to 'concat' (integer expected)", 2)
  end
  span(first, last, ELEMENTS_MAX, "elements to concatenate")
  return join(list, separator, first, last)
end

function safe_table.unpack(list, i, j)
  want_table(list, "unpack")
  local first, last = tointeger(i or 1), tointeger(j or #list)
  if not first or not last then
    raise("bad argument to 'unpack' (integer expected)", 2)
  end
  charge(INTEGER_COST * span(first, last, RESULTS_MAX, "results to unpack"))
  return unpack(list, first, last)
end

function safe_table.move(from, f, e, t, to)
  want_table(from, "move")
  local first, last, target = tointeger(f), tointeger(e), tointeger(t)
  if not first or not last or not target then
    raise("bad argument to 'move' (integer expected)", 2)
  elseif to ~= nil and type(to) ~= "table" then
    complain(5, "move", "table", to)
  end
  charge(INTEGER_COST * span(first, last, ELEMENTS_MAX, "elements to move"))
  return move(from, first, last, target, to or from)
end

local function before(a, b)
  return a < b
end

local function sift(list, root, last, less)
  local value = list[root]
  while true do
    local child = root * 2
    if child > last then
      break
    end
    if child < last and less(list[child], list[child + 1]) then
      child = child + 1
    end
    if not less(value, list[child]) then
      break
    end
    list[root], root = list[child], child
  end
  list[root] = value
end

-- Heap sort, in Lua: comparing is the script's work and must stay in the guard's sight, and a
-- comparator that contradicts itself can spoil the order but nothing else.
function safe_table.sort(list, less)
  want_table(list, "sort")
  if less ~= nil and type(less) ~= "function" then
    complain(2, "sort", "function", less)
  end
  less = less or before
  local last = #list
  for root = last // 2, 1, -1 do
    sift(list, root, last, less)
  end
  for i = last, 2, -1 do
    list[1], list[i] = list[i], list[1]
    sift(list, 1, i - 1, less)
  end
end

---------------------------------------------------------------------------------------------------
-- utf8 and math

local safe_utf8 = { char = utf8.char, charpattern = utf8.charpattern }

for _, name in ipairs({ "codes", "len", "offset" }) do
  local f = utf8[name]
  safe_utf8[name] = function(s, ...)
    if not is_text(s) then
      complain(1, name, "string", s)
    end
    charge(len(s))
    return f(s, ...)
  end
end

local codepoint = utf8.codepoint
function safe_utf8.codepoint(s, i, j, lax)
  if not is_text(s) then
    complain(1, "codepoint", "string", s)
  end
  i = i or 1
  j = j or i
  if not tointeger(i) or not tointeger(j) then
    raise("bad argument to 'codepoint' (integer expected)", 2)
  end
  if i ~= j then
    check_slice(s, i, j)
  end
  return codepoint(s, i, j, lax)
end

local safe_math = {}
for name, value in pairs(math) do
  safe_math[name] = value
end
safe_math.randomseed = nil -- it answers with an address, and the broker seeds the generator

---------------------------------------------------------------------------------------------------
-- Strings as objects and as numbers

local function too_long(value)
  return type(value) == "string" and #value > NUMBER_BYTES_MAX
end

local strings = {}
for event, method in pairs(getmetatable("")) do
  if type(method) == "function" then
    strings[event] = function(a, b) -- arithmetic: reads both operands as numbers
      if too_long(a) or too_long(b) then
        raise("attempt to perform arithmetic on a string value", 2)
      end
      return method(a, b)
    end
  end
end
strings.__index = safe_string
strings.__metatable = false
debug.setmetatable("", strings)

local environment = {
  _VERSION = _VERSION,
  assert = assert,
  error = error,
  ipairs = ipairs,
  next = next,
  pairs = pairs,
  pcall = guard.pcall,
  rawequal = rawequal,
  rawget = rawget,
  rawlen = rawlen,
  rawset = rawset,
  select = select,
  tonumber = tonumber,
  tostring = safe_tostring,
  type = type,
  xpcall = guard.xpcall,
  string = safe_string,
  table = safe_table,
  math = safe_math,
  utf8 = safe_utf8,
}
environment._G = environment
return environment
