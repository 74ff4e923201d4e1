// Part "Flame graph": its controls, its legend, and the graph itself, or the two graphs of a sandwich view.

import { boxActions, copy, lastPart } from "./box_actions.js";
import { isLost } from "./focus.js";
import { foldedText } from "./copy_text.js";
import { drawingOf, element } from "./dom.js";
import { FlameModel } from "./flame_model.js";
import { FlameView, walkViews } from "./flame_view.js";
import { percent } from "./format.js";
import { openMenu } from "./menu.js";
import { foundGroups } from "./search_box.js";
import { colorSquare } from "./shades.js";

/** The text that says why a graph has no boxes. */
export function whyEmpty(page) {
  const { state } = page;
  if (!(page.selection().total > 0)) return "No samples in the selected time and threads.";
  if (state.focus !== null) return "None of the shown stacks goes through this function.";
  return "Everything is hidden. Use the buttons above to show it again.";
}

/** Mounts the part "Flame graph" in `root`. */
export function mountFlame(root, page) {
  new FlamePart(root, page);
}

class FlamePart {
  /** Creates the part's elements and its graphs: the one of all stacks, and the two of a sandwich view. */
  constructor(root, page) {
    Object.assign(this, { root, page, model: new FlameModel(page) });
    this.views = {
      whole: new FlameView(page, "flame", "Flame graph", this.handlers()),
      callers: new FlameView(page, "flame-callers", "Callers", this.handlers()),
      callees: new FlameView(page, "flame-callees", "Callees", this.handlers()),
    };
    this.legend = element("div", { id: "flame-legend", class: "flame-legend", role: "group", tabindex: "0", "aria-label": "Legend" });
    this.kept = element("div", { id: "flame-kept", class: "flame-kept" });
    this.sandwich = element("div", { class: "flame-sandwich" }, this.views.callers.root, this.views.callees.root);
    root.append(this.toolbar(), this.kept, this.legend, this.views.whole.root, this.sandwich);
    root.classList.add("flame");
    /** The function whose sandwich view was drawn last; null if the whole graph was. */
    this.sandwiched = null;
    this.update = drawingOf(page, () => this.show());
    page.store.subscribe(this.update);
    page.walkers.flame = (step) => walkViews(this.shownViews(), step);
    root.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.update);
    this.update();
  }

  /** The bar above the graph: direction, order, what to merge, and buttons. */
  toolbar() {
    const { store } = this.page;
    // True if the tree for this direction starts at the other end of the stacks. A zoom is a path from the root, which
    // the other tree doesn't have, so the zoom is dropped.
    const isTurned = (value) => (value === "bottomup") !== (store.state.direction === "bottomup");
    const choice = (id, key, label, options) => {
      const changes = (value) => ({ [key]: value, ...(key === "direction" && isTurned(value) && { zoom: [] }) });
      const list = element(
        "select",
        { id, "aria-label": label, title: label, onchange: () => store.set(changes(list.value)) },
        ...options.map(([value, text]) => element("option", { value }, text)),
      );
      this[key] = list;
      return list;
    };
    const check = (id, key, label, title) => {
      const box = element("input", { id, type: "checkbox", onchange: () => store.set({ [key]: box.checked }) });
      this[key] = box;
      return element("label", { title }, box, ` ${label}`);
    };
    this.reset = element(
      "button",
      { id: "flame-reset", title: "Show everything (Esc)", onclick: () => this.resetZoom() },
      "Reset zoom",
    );
    return element(
      "div",
      { class: "flame-bar", role: "toolbar", "aria-label": "Flame graph" },
      choice("flame-direction", "direction", "Flame: roots at the bottom. Icicle: roots at the top. Bottom-up: innermost functions at the bottom.", [
        ["flame", "Flame"],
        ["icicle", "Icicle"],
        ["bottomup", "Bottom-up"],
      ]),
      choice("flame-order", "order", "Order", [
        ["merged", "Merged"],
        ["time", this.page.profile.time ? "By time" : "In input order"],
      ]),
      this.page.profile.hasTiers
        ? check("flame-merge-tiers", "mergeTiers", "Merge tiers", "Show all tiers of a function as one box") : null,
      check(
        "flame-merge-recursion",
        "mergeRecursion",
        "Merge recursion",
        "Show a function and its direct calls to itself as one box",
      ),
      element(
        "button",
        { id: "flame-copy", title: "Copy the shown stacks as folded text", onclick: () => this.copyTree() },
        "Copy as text",
      ),
      this.reset,
    );
  }

  /** What the graphs call when the user zooms, opens a menu or presses a key, and after they were painted. */
  handlers() {
    const { store } = this.page;
    return {
      zoom: (view, place) => this.zoom(view, place),
      menu: (view, { node, box, x, y }) => {
        const items = boxActions(this.page, view, box);
        if (items.length > 0) openMenu(view.picture.nameOf(node).slice(0, 80), items, { x, y }, view.scroll);
      },
      key: (view, event, node) => {
        const action = boxActions(this.page, view, view.cursorBox()).find(
          (action) => action && action.key === event.key,
        );
        if (!action || node <= 0) return false;
        action.act();
        return true;
      },
      escape: () => this.leave(),
      painted: () => (this.reset.disabled = !this.shownViews().some((view) => view.isZoomed())),
      empty: () => whyEmpty(this.page),
    };
  }

  /** Goes one step back: out of a zoom, a sandwich view, a focus or a search. Returns true if there was one. */
  leave() {
    const { store } = this.page;
    if (this.shownViews().some((view) => view.isZoomed())) this.resetZoom();
    else if (store.state.sandwich !== null) store.set({ sandwich: null });
    else if (store.state.focus !== null) store.set({ focus: null });
    else if (store.state.search) store.set({ search: "" });
    else return false;
    return true;
  }

  /** Escape also goes back if a button of this part has the focus. */
  key(event) {
    if (event.key === "Escape" && !event.defaultPrevented && this.leave()) event.preventDefault();
  }

  /** Zooms a graph to a box and selects its function. Only the zoom of the whole graph is kept in the state: as a path
   * or, in time order, as a range of time. */
  zoom(view, { node, start, end, path }) {
    const { store } = this.page,
      isPathKept = view === this.views.whole && !view.picture.lanes;
    const selected = node > 0 ? view.picture.functionOf(node) : null;
    view.zoomTo(view.picture.viewOf(path, [start, end]));
    store.set({ selected, ...(isPathKept && { zoom: path }), ...(view.picture.lanes && { span: [start, end] }) });
  }

  resetZoom() {
    for (const view of Object.values(this.views)) if (view.picture) view.zoomTo(view.picture.viewOf([], []));
    this.page.store.set({ zoom: [], span: [] });
  }

  /** Copies the visible tree as folded stacks. In a sandwich view, copies the callees. In time order, copies the
   * merged tree. */
  copyTree() {
    const view = this.shownViews().at(-1),
      isMerged = !view.picture.lanes;
    const picture = isMerged ? view.picture : this.model.wholePicture(true), top = isMerged ? view.zoomed : 0;
    // Where the picture joins unnamed frames in a row, folded stacks list each of them.
    const hasJoinedFrames = picture.tree.runs?.size > 0;
    copy(view, hasJoinedFrames ? foldedText(this.model.pictureOfSingleFrames(picture, top), 0) : foldedText(picture, top));
  }

  shownViews() {
    const { whole, callers, callees } = this.views;
    return this.page.state.sandwich === null ? [whole] : [callers, callees];
  }

  /** Shows the whole graph or, if a function is selected for the sandwich view, its callers and callees. */
  show() {
    const { page, root, model } = this,
      { state } = page;
    if (root.hidden) return;
    this.showChoices(state);
    // When the page switches between the whole graph and a sandwich view, the element with the focus may disappear. The
    // new graph then takes the focus.
    const isSandwich = state.sandwich !== null, isSwitch = this.sandwiched !== state.sandwich;
    const takesFocus = isSwitch && (isLost(document.activeElement) || root.contains(document.activeElement));
    this.sandwiched = state.sandwich;
    this.views.whole.root.hidden = isSandwich;
    this.sandwich.hidden = !isSandwich;
    this.showKept(state);
    this.showLegend();
    if (isSandwich) {
      const { callers, callees } = model.sandwichPictures();
      this.showPicture(this.views.callers, callers, []);
      this.showPicture(this.views.callees, callees, []);
    } else {
      this.showPicture(this.views.whole, model.wholePicture(), state.zoom, state.span);
    }
    if (!takesFocus) return;
    // Keep the keyboard in the graph that replaced the previous one: at the function of the sandwich view, or where the
    // cursor was before.
    const view = this.shownViews().at(-1);
    if (isSandwich) view.pointToFirst();
    view.scroll.focus({ preventScroll: true });
  }

  /** Paints a picture in one of the graphs. The view goes to `zoom` if the picture or the wanted zoom has changed, and
   * otherwise stays where the user has moved it. */
  showPicture(view, picture, zoom, span = []) {
    picture.found = foundGroups(this.page)?.groups ?? null;
    picture.selected = this.model.selectedGroup();
    const wanted = JSON.stringify([zoom, span]);
    if (view.picture !== picture || (view === this.views.whole && view.wanted !== wanted))
      view.show(picture, zoom, span);
    view.wanted = wanted;
    view.paint();
  }

  showChoices(state) {
    for (const key of ["direction", "order"]) this[key].value = state[key];
    for (const key of ["mergeTiers", "mergeRecursion"]) if (this[key]) this[key].checked = state[key];
    this.order.disabled = state.direction === "bottomup" || state.sandwich !== null;
    this.direction.disabled = state.sandwich !== null;
  }

  /** Shows a button for each hidden or isolated function. Clicking the button undoes that. */
  showKept(state) {
    const { profile, store } = this.page,
      names = profile.functions.name;
    const buttons = [];
    // A click on the button makes these changes to the state.
    const addButton = (words, name, changes) =>
      buttons.push(
        element(
          "button",
          { title: `${words} ${name} (click to undo)`, onclick: () => store.set(changes) },
          `${words} `,
          element("b", {}, name.slice(0, 80)),
          " ✕",
        ),
      );
    // The change that removes a value from one of the state's lists.
    const without = (key, value) => ({ [key]: state[key].filter((other) => other !== value) });
    if (state.sandwich !== null) addButton("Callers and callees of", names[state.sandwich] ?? "?", { sandwich: null });
    if (state.focus !== null) addButton("Only stacks through", names[state.focus] ?? "?", { focus: null });
    for (const number of state.hiddenFunctions)
      addButton("Hidden:", names[number] ?? "?", without("hiddenFunctions", number));
    for (const module of state.hiddenModules)
      addButton("Hidden: module", lastPart(module), without("hiddenModules", module));
    for (const number of state.hiddenCategories)
      addButton("Hidden:", `${profile.categories[number]?.name ?? "?"} code`, without("hiddenCategories", number));
    this.kept.replaceChildren(...buttons);
  }

  /** Shows the kinds of code that have self weight, with their colors and shares. */
  showLegend() {
    const { page, model } = this,
      sums = model.ownByCategory();
    this.legend.replaceChildren();
    this.legend.hidden = !page.profile.knowsCategories;
    if (this.legend.hidden) return;
    page.profile.categories.forEach(({ name, letter }, number) => {
      if (!(sums[number] > 0)) return;
      const text = `${name} ${percent(sums[number], page.selection().total)}`;
      this.legend.append(element("span", { "data-category": name }, colorSquare(letter), text));
    });
  }
}
