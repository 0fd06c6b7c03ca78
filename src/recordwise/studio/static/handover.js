import {find, make, say, scrolling} from "./dom.js";
import {saved} from "./state.js";
import {post} from "./server.js";

// The plan as a file and in Python, the report, and the commands that come next. Nothing is released here.
export const showHandOver = (state, act, about) => {
  const host = find("#hand-over"), told = make("p", {role: "status", id: "hand-told"}), texts = make("div", {id: "hand-texts"});
  const code = (title, name, text) => make("details", {open: name === "commands"}, make("summary", {}, title), scrolling(title, make("pre", {"data-text": name}, text)));
  const ask = save => async () => {
    say(told, "");
    try {
      const found = await post("/handover", {state: saved(state()), save});
      texts.replaceChildren(code("What to run next", "commands", found.commands.join("\n")), code(found.names.plan, "plan", found.plan), code("The same in Python", "python", found.python));
      say(told, save ? "Saved in the folder: " + Object.values(found.names).join(", ") + "." : "");
    } catch (problem) { say(told, problem.message); }
  };
  host.replaceChildren(
    make("p", {}, "The plan with what you chose, the same in Python, and a report for the committee: this page as one file, with your reasons, that works without the studio. The studio releases nothing; the commands do."),
    make("div", {class: "controls"}, make("button", {type: "button", id: "hand-show", onclick: ask(false)}, "Show the plan"), make("button", {type: "button", id: "hand-save", class: "primary", onclick: ask(true)}, "Save plan and report")),
    told, texts);
};
