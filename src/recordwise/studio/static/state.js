// The state of the studio and its pure step: the same as recordwise.studio.state, compared with it by tests.
export const MOST_KEPT = 4;
const MOST_STEPS = 200, MOST_TEXT = 2000, VERSION = 1;

export const limitsOf = trade => ({
  positions: trade.positions.length,
  candidates: Object.fromEntries(trade.statistics.map(each => [each.key, each.candidates.map(own => own.name)])),
  draws: trade.draws,
});
export const firstState = trade => ({
  limits: limitsOf(trade),
  now: {position: trade.today, mechanisms: Object.fromEntries(trade.statistics.map(each => [each.key, each.today])), reasons: {}, kept: [], draw: 0},
  past: [], future: [], last: "",
});
export const saved = ({now, past, future, last}) => ({version: VERSION, now, past, future, last});

// Text with its keys in order, as Python writes it, so that both find the same digest.
const ordered = value => {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map(key => [key, ordered(value[key])]));
};
export const stateText = state => JSON.stringify(ordered(saved(state)));
export const stateDigest = async state => {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(stateText(state)));
  return [...new Uint8Array(bytes)].slice(0, 8).map(byte => byte.toString(16).padStart(2, "0")).join("");
};

const shortened = text => text.slice(0, MOST_TEXT).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
const whole = number => Number.isInteger(number);
const after = (now, {kind, number = 0, key = "", text = ""}, limits) => {
  const own = Object.hasOwn(limits.candidates, key) ? limits.candidates[key] : null;
  switch (kind) {
    case "move": return whole(number) && number >= 0 && number < limits.positions ? {...now, position: number} : null;
    case "choose": return own?.includes(text) ? {...now, mechanisms: {...now.mechanisms, [key]: text}} : null;
    case "keep": return now.kept.length < MOST_KEPT ? {...now, kept: [...now.kept, {name: shortened(text), position: now.position, mechanisms: now.mechanisms}]} : null;
    case "drop": return number >= 0 && number < now.kept.length ? {...now, kept: now.kept.filter((_, at) => at !== number)} : null;
    case "show": return number >= 0 && number < now.kept.length ? {...now, position: now.kept[number].position, mechanisms: now.kept[number].mechanisms} : null;
    case "reason": {
      if (key !== "position" && !own) return null;
      const {[key]: _, ...rest} = now.reasons, told = shortened(text);
      return {...now, reasons: told.trim() ? {...rest, [key]: told} : rest};
    }
    case "another_draw": return {...now, draw: (now.draw + 1) % limits.draws};
  }
  return null;
};
const same = (one, other) => JSON.stringify(ordered(one)) === JSON.stringify(ordered(other));
export const step = (state, event) => {
  const {now, past, future, limits} = state;
  if (event.kind === "undo") return past.length ? {...state, now: past.at(-1), past: past.slice(0, -1), future: [...future, now], last: ""} : state;
  if (event.kind === "redo") return future.length ? {...state, now: future.at(-1), past: [...past, now], future: future.slice(0, -1), last: ""} : state;
  const next = after(now, event, limits);
  if (next === null || same(next, now)) return state;
  const label = event.kind === "reason" ? "reason " + event.key : event.kind;
  const together = label === state.last && (event.kind === "move" || event.kind === "reason") && past.length;
  return {...state, now: next, past: together ? past : [...past, now].slice(-MOST_STEPS), future: [], last: label};
};

// A saved state again, or null if it is about another trade file.
const fits = (setting, limits) => {
  const chosen = [setting, ...setting.kept], keys = Object.keys(limits.candidates);
  return chosen.every(each => each.position >= 0 && each.position < limits.positions && Object.keys(each.mechanisms).length === keys.length
    && keys.every(key => limits.candidates[key].includes(each.mechanisms[key])))
    && setting.draw >= 0 && setting.draw < limits.draws && setting.kept.length <= MOST_KEPT
    && Object.keys(setting.reasons).every(key => key === "position" || Object.hasOwn(limits.candidates, key));
};
export const stateOf = (content, trade) => {
  try {
    const limits = limitsOf(trade), {version, now, past, future, last} = content;
    return version === VERSION && [now, ...past, ...future].every(each => fits(each, limits)) ? {limits, now, past, future, last} : null;
  } catch { return null; }
};
