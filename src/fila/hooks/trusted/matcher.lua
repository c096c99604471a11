-- The pattern matcher in Lua, for subjects on which the standard one could take too long.
--
-- Works on a program that `pattern.lua` has read. It asks the standard matcher only for single
-- items and runs of one item, each linear in the subject; every choice and every step back is an
-- instruction the guard can count. The results are those of the standard matcher.

local limits, guard = ...

local c_find, sub, unpack = string.find, string.sub, table.unpack
local concat = table.concat
local charge = guard.charge

local OPEN <const>, POSITION <const> = -1, -2

local steps = {}

local function go_on(m, node, at)
  return steps[m.program[node].op](m, node, at)
end

steps["done"] = function(_, _, at)
  return at
end

steps["end"] = function(m, node, at)
  if at == #m.subject + 1 then
    return go_on(m, node + 1, at)
  end
end

steps["single"] = function(m, node, at)
  local program, subject = m.program, m.subject
  repeat
    if not c_find(subject, program[node].source, at) or at > #subject then
      return nil
    end
    node, at = node + 1, at + 1
  until program[node].op ~= "single"
  return go_on(m, node, at)
end

steps["maybe"] = function(m, node, at)
  if at <= #m.subject and c_find(m.subject, m.program[node].source, at) then
    local stop = go_on(m, node + 1, at + 1)
    if stop then
      return stop
    end
  end
  return go_on(m, node + 1, at)
end

steps["most"] = function(m, node, at)
  local item = m.program[node]
  local _, run = c_find(m.subject, item.run, at)
  charge(run - at + 1)
  for stop = run + 1, at + item.least, -1 do
    local found = go_on(m, node + 1, stop)
    if found then
      return found
    end
  end
  return nil
end

steps["least"] = function(m, node, at)
  local subject, source = m.subject, m.program[node].source
  while true do
    local found = go_on(m, node + 1, at)
    if found then
      return found
    end
    if at > #subject or not c_find(subject, source, at) then
      return nil
    end
    at = at + 1
  end
end

steps["balance"] = function(m, node, at)
  charge(#m.subject - at + 1)
  local _, stop = c_find(m.subject, m.program[node].source, at)
  if stop then
    return go_on(m, node + 1, stop + 1)
  end
end

steps["frontier"] = function(m, node, at)
  local source, subject = m.program[node].source, m.subject
  local before = at == 1 and "\0" or sub(subject, at - 1, at - 1)
  local here = at > #subject and "\0" or sub(subject, at, at)
  if not c_find(before, source) and c_find(here, source) then
    return go_on(m, node + 1, at)
  end
end

local function start_capture(m, node, at, size)
  local level = m.level + 1
  m.level, m.from[level], m.size[level] = level, at, size
  local stop = go_on(m, node + 1, at)
  if not stop then
    m.level = level - 1
  end
  return stop
end

steps["open"] = function(m, node, at)
  return start_capture(m, node, at, OPEN)
end

steps["position"] = function(m, node, at)
  return start_capture(m, node, at, POSITION)
end

steps["close"] = function(m, node, at)
  local level = m.level
  while m.size[level] ~= OPEN do
    level = level - 1
  end
  m.size[level] = at - m.from[level]
  local stop = go_on(m, node + 1, at)
  if not stop then
    m.size[level] = OPEN
  end
  return stop
end

steps["reference"] = function(m, node, at)
  local capture = m.program[node].capture
  local size = m.size[capture]
  if size == POSITION then -- the standard matcher compares nothing here either way
    return nil
  end
  charge(size)
  local from = m.from[capture]
  if sub(m.subject, from, from + size - 1) == sub(m.subject, at, at + size - 1) then
    return go_on(m, node + 1, at + size)
  end
end

local function try(m, at)
  m.level = 0
  return go_on(m, 1, at)
end

-- The first match at or after `at`: where it starts and where it ends (exclusive).
local function search(m, at)
  local program, subject = m.program, m.subject
  if program.anchored then
    return at, try(m, at)
  end
  local lead = program.lead
  while at <= #subject + 1 do
    if lead then
      at = c_find(subject, lead, at)
      if not at then
        return nil
      end
    end
    local stop = try(m, at)
    if stop then
      return at, stop
    end
    at = at + 1
  end
  return nil
end

local function capture(m, level)
  local from, size = m.from[level], m.size[level]
  if size == POSITION then
    return from
  end
  return sub(m.subject, from, from + size - 1)
end

local function captures(m, at, stop)
  if m.level == 0 then
    return sub(m.subject, at, stop - 1)
  end
  local list = {}
  for level = 1, m.level do
    list[level] = capture(m, level)
  end
  return unpack(list, 1, m.level)
end

local function captures_if_any(m)
  if m.level > 0 then
    return captures(m)
  end
end

local function matcher(program, subject)
  return { program = program, subject = subject, level = 0, from = {}, size = {} }
end

-- table.concat in pieces, since a long list takes long, above all one of numbers.
local function join(list, separator, first, last)
  first, last = first or 1, last or #list
  separator = separator or ""
  local piece <const> = limits.elements_per_piece
  if last - first < piece then
    local text = concat(list, separator, first, last)
    charge(last - first + #text)
    return text
  end
  local parts = {}
  for from = first, last, piece do
    local stop = from + piece - 1
    local text = concat(list, separator, from, stop < last and stop or last)
    parts[#parts + 1] = text
    charge(8 * piece + #text)
  end
  return concat(parts, separator)
end

return {
  OPEN = OPEN,
  POSITION = POSITION,
  new = matcher,
  search = search,
  capture = capture,
  captures = captures,
  captures_if_any = captures_if_any,
  join = join,
}
