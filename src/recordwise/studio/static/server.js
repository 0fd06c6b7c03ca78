// The only requests of the page: to the server it came from, with the cookie of this window.
export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}
const answer = async response => {
  if (response.ok) return response.json();
  let problem = "The studio does not answer as it should.";
  try { problem = (await response.json()).problem ?? problem; } catch { /* An answer without words. */ }
  throw new Refused(response.status, problem);
};
export const get = path => fetch(path, {headers: {accept: "application/json"}}).then(answer);
export const post = (path, body) => fetch(path, {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)}).then(answer);
// The token of the address is exchanged for a cookie and taken out of the address.
export const enter = async () => {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  try { await post("/session", {token}); } catch (problem) { if (!(problem instanceof Refused) || problem.status !== 401) throw problem; }
};
export const watch = (changed, lost) => {
  const events = new EventSource("/events");
  events.addEventListener("message", event => changed(JSON.parse(event.data)));
  events.addEventListener("error", () => { if (events.readyState === EventSource.CLOSED) lost(); });
  return events;
};
