// A search field with a checkbox for regular expressions, and the number of matches. Ctrl+F, F3 and "/" move the focus
// to it.

import { element } from "./dom.js";
import { grouped } from "./format.js";

/** A search field. `owner` handles its actions: searched(text, isRegex); walk(step), which moves to the next match
 * (1) or the previous one (−1) and returns {what, at, count}, or null if there are none; left(), when Escape leaves
 * the field. */
export class SearchField {
  /** `id` is the ID of the input element. `found` is the element with the number of matches, `box` the checkbox. */
  constructor(owner, id) {
    this.owner = owner;
    this.found = element("output", { id: `${id}-matched`, for: id });
    this.input = element("input", {
      id, type: "search", placeholder: "Search functions (Ctrl-F)", "aria-label": "Search functions",
      title: "Part of a name; Enter: next match; Shift+Enter: previous match; Escape: back to the page",
      "aria-describedby": `${id}-matched`, oninput: () => this.changed(), onkeydown: (event) => this.key(event),
    });
    this.box = element("input", { id: `${id}-regex`, type: "checkbox", onchange: () => this.changed() });
    const label = element("label", { title: "Use a regular expression" }, this.box, " regex");
    this.elements = [this.input, label, this.found];
    addEventListener("keydown", (event) => this.pageKey(event));
  }

  get text() {
    return this.input.value;
  }

  get isRegex() {
    return this.box.checked;
  }

  /** Shows another search. Doesn't change the text while the user is typing. */
  set(text, isRegex) {
    if (document.activeElement !== this.input) this.input.value = text;
    this.box.checked = isRegex;
  }

  clear() {
    this.input.value = "";
    this.changed();
  }

  /** Shows the result of a search, with details in a tooltip. */
  show(found, details, isWrong) {
    this.input.setAttribute("aria-invalid", String(isWrong));
    this.found.title = details;
    // Don't overwrite the match that Enter moved to, unless the search has a new result.
    if (this.shown === found) return;
    this.shown = this.found.textContent = found;
  }

  changed() {
    this.owner.searched(this.text, this.isRegex);
  }

  /** Handles a key in the field: Enter goes to the next match, Shift+Enter to the previous one. Escape clears the field
   * or, if it is empty, leaves it. */
  key(event) {
    if (event.key === "Escape" && this.text) this.clear();
    else if (event.key === "Escape") this.owner.left();
    else if (event.key === "Enter") this.walk(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  walk(step) {
    const walked = this.text ? this.owner.walk(step) : null;
    if (walked) this.found.textContent = `${walked.what} ${grouped(walked.at)} of ${grouped(walked.count)} · ${this.shown}`;
  }

  /** Handles a key that is pressed anywhere on the page: Ctrl+F, F3 and "/" move the focus to the field. */
  pageKey(event) {
    const isAsked = event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key === "f");
    const isSlash = event.key === "/" && !(event.target instanceof HTMLInputElement) && !event.defaultPrevented;
    if (!isAsked && !isSlash) return;
    event.preventDefault();
    this.input.select();
    this.input.focus();
  }
}
