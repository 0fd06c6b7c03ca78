// Tables that are wider than the page scroll; a keyboard must reach them to do so.
new MutationObserver(() => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) box.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });

// What is copied from a block of commands with their output are the commands, without their prompts.
new MutationObserver(() => {
  for (const button of document.querySelectorAll(".md-code__button[data-clipboard-target]:not([data-clipboard-text])")) {
    const lines = document.querySelector(button.dataset.clipboardTarget).textContent.split("\n");
    const typed = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    if (typed.length > 0) button.dataset.clipboardText = typed.join("\n");
  }
}).observe(document.documentElement, { childList: true, subtree: true });

// Options, formulas and ids of theorems are not divided at their hyphens, nor numbers from their units.
{
  const WHOLE = /\S*[-\u2011]\S*/g;
  const LONGEST = 28;
  const text = document.querySelector(".md-content");
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement.closest("pre, .headerlink, script, style") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  for (const node of found) {
    node.data = node.data.replace(/(\d) (?=(?:%|s|ms|MB|GB)(?![A-Za-z]))/g, "$1\u00a0");
    const coded = node.parentElement.closest("code") !== null;
    const parts = [];
    let done = 0;
    for (const token of node.data.matchAll(WHOLE)) {
      if (token[0].length > LONGEST || !(coded || /[0-9()=^/]|T-[A-Z]/.test(token[0]))) continue;
      const whole = document.createElement("span");
      whole.className = "whole";
      whole.textContent = token[0];
      parts.push(node.data.slice(done, token.index), whole);
      done = token.index + token[0].length;
    }
    if (parts.length > 0) node.replaceWith(...parts, node.data.slice(done));
  }
}
