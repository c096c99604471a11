-- The last trusted chunk: seeds the generator, then empties the runtime's real globals and its
-- table of loaded libraries. Scripts have an environment of their own and never see these; this way
-- there is also nothing to find for one that would.

local seed, loaded, globals, pairs = ..., package.loaded, _G, pairs

math.randomseed(seed)
package.preload, package.searchers, package.cpath, package.path = nil, nil, "", ""
for name in pairs(loaded) do
  loaded[name] = nil
end
for name in pairs(globals) do
  globals[name] = nil
end
