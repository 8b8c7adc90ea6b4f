-- Changes buckets of a window's chunk, unless someone else has changed what was
-- decided on: one step on the server, so that of many workers one adds a key.
--
-- KEYS: the strings of the chunk, also those that are to be made or dropped.
-- ARGV: the first eight bytes of the first string as they were, and as they are to
-- be; for each string its whole length, and 'make', 'keep' or 'drop'. Then for each
-- string its own first eight bytes, or '', the type of its entries, and lists,
-- each behind its length: ranges (the bucket's name, where, the bytes there were, the
-- bytes instead), bytes to be raised (where, the least), numbers to be set (type,
-- bit, number), and entries (the names of the buckets that it passed and of its
-- own, bit, what to add, the sum).
--
-- Returns the version, and which of the ranges and entries were not changed, by
-- their place among all: others had changed them, or an earlier one of a bucket that
-- it depends on. Nothing (0) if the chunk has changed.
local call, at = redis.call, 2 + 2 * #KEYS
if call('GETRANGE', KEYS[1], 0, 7) ~= ARGV[1] then return 0 end
for i, key in ipairs(KEYS) do
  -- A command that writes would make a string that is missing.
  if ARGV[2 + 2 * i] ~= 'make' and call('STRLEN', key) ~= tonumber(ARGV[1 + 2 * i]) then return 0 end
end
local function take()
  at = at + 1
  return ARGV[at]
end
local changed, number, foot = {}, 0, string.rep('\0', 9) .. '\165'
-- Buckets in which others came first.
local spoiled, any = {}, false
local function note(same, names)
  number = number + 1
  local own
  if any or not same then
    for name in string.gmatch(names, '%S+') do
      same, own = same and not spoiled[name], name
    end
  end
  if not same then
    changed[#changed + 1] = number
    spoiled[own], any = true, true
  end
  return same
end
local function minus(text)
  return string.sub(text, 1, 1) == '-' and string.sub(text, 2) or '-' .. text
end

for i, key in ipairs(KEYS) do
  local what, head, kind = ARGV[2 + 2 * i], take(), take()
  if what ~= 'keep' then call('UNLINK', key) end
  if what == 'make' then
    call('SETRANGE', key, ARGV[1 + 2 * i] - #foot, foot)
    -- Not longer than the filter.
    local last = call('PEXPIRETIME', KEYS[1])
    if last > 0 then call('PEXPIREAT', key, last) end
  end
  if head ~= '' then call('SETRANGE', key, 0, head) end
  for _ = 1, take() do
    local name, where, old, new = take(), take(), take(), take()
    if note(call('GETRANGE', key, where, where + #old - 1) == old, name) then call('SETRANGE', key, where, new) end
  end
  for _ = 1, take() do
    local where, least = take(), take()
    if call('GETRANGE', key, where, where) < least then call('SETRANGE', key, where, least) end
  end
  for _ = 1, take() do call('BITFIELD', key, 'SET', take(), take(), take()) end
  local count, sets, n = tonumber(take()), {}, 0
  for j = at + 2, at + 4 * count, 4 do
    sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'INCRBY', kind, ARGV[j], ARGV[j + 1]
    n = n + 4
  end
  for j, sum in ipairs(count > 0 and call('BITFIELD', key, unpack(sets)) or {}) do
    local last = at + 4 * j
    if not note(sum == tonumber(ARGV[last]), ARGV[last - 3]) then
      call('BITFIELD', key, 'INCRBY', kind, ARGV[last - 2], minus(ARGV[last - 1]))
    end
  end
  at = at + 4 * count
end
call('SETRANGE', KEYS[1], 0, ARGV[2])
return {call('BITFIELD', KEYS[1], 'INCRBY', 'u48', 64, 1)[1], changed}
