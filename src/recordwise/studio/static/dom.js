// Elements, made without markup: nothing that is typed or read can become code.
export const find = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const attributes = (made, given) => {
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  return made;
};
export const make = (name, given = {}, ...children) => {
  const made = attributes(document.createElement(name), given);
  made.append(...children.flat(4).filter(each => each !== null && each !== undefined));
  return made;
};
export const draw = (name, given = {}, ...children) => {
  const made = attributes(document.createElementNS("http://www.w3.org/2000/svg", name), given);
  made.append(...children.flat(4).filter(each => each !== null && each !== undefined));
  return made;
};
export const say = (selector, text) => {
  const at = typeof selector === "string" ? find(selector) : selector;
  if (at && at.textContent !== text) at.textContent = text;
};
// What is there already is not set again: the browser would lay it out once more.
export const put = (at, name, value) => {
  const text = String(value);
  if (at.getAttribute(name) !== text) at.setAttribute(name, text);
};
export const options = (select, entries, chosen) => select.replaceChildren(
  ...entries.map(([value, text]) => make("option", {value, selected: value === chosen}, text)));
export const scrolling = (label, ...children) => make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": label}, children);
