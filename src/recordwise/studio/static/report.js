import {all, find, make, say} from "./dom.js";
import {openStudio} from "./studio.js";

// The report: the same page from a file, with the state it was saved in. What is moved here changes nothing but this window.
const {trade, state, texts} = JSON.parse(find("#data").textContent);
const stored = () => { try { return JSON.parse(sessionStorage.getItem("studio " + location.hash.slice(1))); } catch { return null; } };
openStudio(trade, {initial: stored() ?? state, fixed: true, handOver: () => {
  find("#hand-over").replaceChildren(make("p", {}, "The plan that was handed over, and the commands that come next."),
    ...[["What to run next", texts.commands.join("\n")], ["The plan", texts.plan], ["The same in Python", texts.python]].map(([title, text]) => make("details", {}, make("summary", {}, title), make("pre", {tabindex: "0", role: "region", "aria-label": title}, text))));
}});
say("#over", "Report of the studio");
say("#foot", "Written by the studio of recordwise. This file makes no request: what you move stays in your browser.");
find("#keep-form").hidden = true;
document.documentElement.dataset.ready = "report";
window.addEventListener("beforeprint", () => all("details").forEach(each => { each.open = true; }));
