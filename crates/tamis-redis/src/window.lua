-- Adds keys of a window to one of its periods, unless another period has them:
-- one step on the server, so that of many workers, whatever their clocks say,
-- one finds a key new.
--
-- KEYS: the ledger of the chunk, then the strings of some periods.
-- ARGV: the period; 'clock' or 'given', by whom; 'quiet' or 'within'; 1 if
-- replicas are waited for; the generations; a period's length in microseconds;
-- how long a string outlives its period, in milliseconds; a string's bytes
-- without its foot; the bytes of a block; the foot of a new string; how many
-- periods have their strings in KEYS, and which. Then for each key where its
-- block is, and two bytes for each of its bits: the byte in the block, and the
-- bit in the byte.
--
-- Returns the period that counted, the newest of the ledger, and for each key 1
-- if it was new, else 0. Or 'more' and periods whose strings must be in KEYS,
-- too; 'missing' and a string; 'old' and the newest period if the window has
-- passed the one that was asked for: all keys are new, and none was added.
local period, given, quiet = tonumber(ARGV[1]), ARGV[2] == 'given', ARGV[3] == 'quiet'
local generations, step, life = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local len, block, named_count = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[11])
local MARK, MINUTE = 165, 60000000
local function text(number) return string.format('%.0f', number) end

-- The ledger: `period:end ` of each string that was made, and a foot.
local ledger = redis.call('GET', KEYS[1])
if not ledger or string.byte(ledger, -1) ~= MARK then return {'missing', KEYS[1]} end
local listed, newest = {}, nil
for number, ends in string.gmatch(string.sub(ledger, 1, -11), '(%-?%d+):(%d+) ') do
  number = tonumber(number)
  listed[number] = ends
  if not newest or number > newest then newest = number end
end

-- A time that is not there yet does not move the window, nor does a clock that
-- is behind bring it back.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if period * step > now + step + MINUTE then
  local current = math.floor(now / step)
  period = newest or current
  if not given then period = math.max(current, period) end
elseif newest and not given then
  period = math.max(period, newest)
end
if newest and period < newest - generations then return {'old', text(newest)} end

local named, more = {}, {'more'}
for i = 1, named_count do named[tonumber(ARGV[11 + i])] = KEYS[1 + i] end
for number in pairs(listed) do
  if not named[number] then more[#more + 1] = text(number) end
end
if not named[period] then more[#more + 1] = text(period) end
if #more > 1 then return more end

if not listed[period] then
  local ends = math.max((period + 1) * step, now + step) / 1000 + life
  listed[period] = text(ends)
  -- Not longer than the filter.
  local last = redis.call('PEXPIRETIME', KEYS[1])
  if last > 0 then ends = math.min(ends, last) end
  redis.call('SETRANGE', named[period], len, ARGV[10])
  redis.call('PEXPIREAT', named[period], text(ends))
  newest = math.max(period, newest or period)
  -- One more than the window holds: for keys, and clocks, that are late.
  local kept = {}
  for number, ends in pairs(listed) do
    if number < newest - generations - 1 then
      redis.call('UNLINK', named[number])
    else
      kept[#kept + 1] = text(number) .. ':' .. ends .. ' '
    end
  end
  redis.call('SET', KEYS[1], table.concat(kept) .. string.sub(ledger, -10), 'KEEPTTL')
end

-- The strings to be asked, the period's own first.
local live = {}
for number in pairs(listed) do
  if number >= period - generations and number >= newest - generations - 1 then
    local foot = redis.call('GETRANGE', named[number], len, len + 10)
    if #foot ~= 10 or string.byte(foot, 10) ~= MARK then
      return {'missing', named[number]}
    elseif number == period then
      table.insert(live, 1, number)
    else
      live[#live + 1] = number
    end
  end
end

-- The bits of a key that a string lacks, as arguments that set them, or the
-- first of them; nil if it has all.
local MASKS = {[0] = 128, 64, 32, 16, 8, 4, 2, 1}
local function lacking(number, start, at, all)
  local line = redis.call('GETRANGE', named[number], start, start + block - 1)
  local sets
  for i = 1, #at, 2 do
    if bit.band(string.byte(line, at[i] + 1), MASKS[at[i + 1]]) == 0 then
      if not all then return true end
      sets = sets or {}
      local n = #sets
      sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'SET', 'u1', (start + at[i]) * 8 + at[i + 1], 1
    end
  end
  return sets
end

local answers, wrote = {text(period), text(newest)}, false
for i = 12 + named_count, #ARGV, 2 do
  local start, at = tonumber(ARGV[i]), {string.byte(ARGV[i + 1], 1, -1)}
  local sets, seen = nil, false
  for _, number in ipairs(live) do
    local own = number == period
    local lacks = lacking(number, start, at, own)
    if own then sets = lacks end
    if not lacks then
      seen = true
      break
    end
  end
  if sets and (quiet or not seen) then
    redis.call('BITFIELD', named[period], unpack(sets))
    wrote = true
  end
  answers[#answers + 1] = seen and 0 or 1
end
-- The version: what others have seen of the string is not all any more.
if wrote then redis.call('BITFIELD', named[period], 'INCRBY', 'u32', len * 8, 1) end
-- Something to wait for, also if nothing was new.
if ARGV[4] == '1' then
  redis.call('BITFIELD', named[period], 'OVERFLOW', 'WRAP', 'INCRBY', 'u8', (len + 8) * 8, 1)
end
return answers
