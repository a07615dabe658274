-- In place of the fence where a test takes it away.
local function stale(session, epoch) return false end
