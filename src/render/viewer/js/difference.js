// Part "Difference": changes since an earlier profile. Shows the flame graph of the later profile, colored by growth
// and decline, and the functions that changed by more than chance.

import { categoriesOf } from "./box_categories.js";
import { Comparison, changedFunctions } from "./comparison.js";
import { drawingOf, element } from "./dom.js";
import { DifferencePicture } from "./difference_picture.js";
import { FlameModel } from "./flame_model.js";
import { whyEmpty } from "./flame.js";
import { FlameView, walkViews } from "./flame_view.js";
import { amount, counted, grouped, percent, relativeChange } from "./format.js";
import { boxActions } from "./box_actions.js";
import { openMenu } from "./menu.js";
import { foundGroups } from "./search_box.js";
import { colorSquare } from "./shades.js";
import { SIGNIFICANT } from "./significance.js";

/** The maximum number of rows in the table. */
const MOST_ROWS = 400;

const LEGEND = [
  ["4", "much less"],
  ["1", "less"],
  ["0", "no change"],
  ["5", "more"],
  ["8", "much more, or new"],
];

/** What the color for "no change" means, by the kind of evidence. */
const NO_CHANGE = { samples: "within noise", exact: "the same", nothing: "the same" };

const NONE_CHANGED = { samples: "No function changed by more than sampling noise" };

/** Mounts the part "Difference" in `root`. */
export function mountDifference(root, page) {
  new DifferencePart(root, page);
}

class DifferencePart {
  /** Creates the part's elements. `byTotal`: the table has total instead of self weights. `withNoise`: it also has
   * changes that may be noise. */
  constructor(root, page) {
    Object.assign(this, { root, page, model: new FlameModel(page), byTotal: false, withNoise: false });
    this.view = new FlameView(page, "difference-flame", "Flame graph of the differences", this.handlers());
    this.facts = element("p", { id: "difference-facts", class: "difference-facts" });
    this.table = element("tbody");
    this.count = element("span", { id: "difference-count" });
    root.append(this.toolbar(), this.facts, this.legend(), this.view.root, this.tableElement());
    root.classList.add("flame", "difference");
    this.update = drawingOf(page, () => this.show());
    page.store.subscribe(this.update);
    page.walkers.difference = (step) => walkViews([this.view], step);
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.defaultPrevented && this.leave()) event.preventDefault();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.update);
    this.update();
  }

  /** The bar above the graph: whether to normalize, which sums the table has, and whether it includes noise. */
  toolbar() {
    const { store } = this.page;
    const check = (id, label, title, isOn, change) => {
      const box = element("input", { id, type: "checkbox", checked: isOn, onchange: () => change(box.checked) });
      return element("label", { title }, box, ` ${label}`);
    };
    const sums = element(
      "select",
      {
        id: "difference-sums",
        "aria-label": "Totals",
        onchange: () => {
          this.byTotal = sums.value === "total";
          this.update();
        },
      },
      element("option", { value: "self" }, "Self"),
      element("option", { value: "total" }, "Total"),
    );
    this.normalize = check(
      "difference-normalize",
      "Normalize",
      "Compare percentages, as if both recordings had the same length",
      store.state.normalize,
      (normalize) => store.set({ normalize }),
    );
    return element(
      "div",
      { class: "flame-bar", role: "toolbar", "aria-label": "Difference" },
      this.normalize,
      element("label", {}, "Functions by ", sums),
      check(
        "difference-noise",
        "Include changes within noise",
        `Also show changes of less than ${SIGNIFICANT} standard deviations`,
        false,
        (withNoise) => {
          this.withNoise = withNoise;
          this.update();
        },
      ),
      this.count,
    );
  }

  legend() {
    const entries = LEGEND.map(([letter, text]) => element("span", { "data-letter": letter }, colorSquare(letter), text));
    return element("div", { id: "difference-legend", class: "flame-legend", role: "group", tabindex: "0", "aria-label": "Legend" }, ...entries);
  }

  /** Creates the table of changed functions. `showTable` fills in its rows. */
  tableElement() {
    const head = ["before", "after", "delta (points)", "change", "samples before", "samples after"].map((name) =>
      element("th", { class: "number", scope: "col" }, name),
    );
    return element(
      "div",
      { class: "difference-table", tabindex: "0", role: "region", "aria-label": "Changed functions" },
      element(
        "table",
        { id: "difference-table" },
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            ...head,
            element("th", { scope: "col" }, "module"),
            element("th", { scope: "col" }, "function"),
          ),
        ),
        this.table,
      ),
    );
  }

  /** What the graph calls when the user zooms, opens a menu or presses a key. */
  handlers() {
    const { store } = this.page;
    return {
      zoom: (view, { node, path }) => {
        view.zoomTo(view.picture.viewOf(path));
        store.set({ zoom: path, selected: node > 0 ? view.picture.functionOf(node) : null });
      },
      menu: (view, { node, box, x, y }) =>
        openMenu(view.picture.nameOf(node).slice(0, 80), boxActions(this.page, view, box), { x, y }, view.scroll),
      key: (view, event) => {
        const action = boxActions(this.page, view, view.cursorBox()).find(
          (action) => action && action.key === event.key,
        );
        action?.act();
        return Boolean(action);
      },
      escape: () => this.leave(),
      empty: () => whyEmpty(this.page),
    };
  }

  /** Goes one step back: out of a zoom, a focus or a search. Returns true if there was one. */
  leave() {
    const { view, page: { store } } = this;
    if (view.isZoomed()) {
      view.zoomTo(view.picture.viewOf([]));
      store.set({ zoom: [] });
    } else if (store.state.focus !== null) store.set({ focus: null });
    else if (store.state.search) store.set({ search: "" });
    else return false;
    return true;
  }

  /** The comparison of the two profiles, with the current settings. */
  comparison() {
    const { page } = this,
      { state, profile } = page,
      selection = page.selection(),
      baseline = page.baseline();
    return this.model.remember("comparison", [selection, baseline, state.normalize], () => {
      const event = Math.min(state.event, profile.events.length - 1);
      return new Comparison(baseline, selection, profile.baseline.evidence[event], state.normalize);
    });
  }

  /** Draws the graph and the table. Picture and comparison are only made anew if what they depend on has changed. */
  show() {
    const { page, root, view, model } = this;
    if (root.hidden) return;
    const { state } = page,
      comparison = this.comparison(),
      looks = model.looks();
    const tree = page.tree("calls"),
      before = page.baselineTree();
    const upward = state.direction === "flame";
    const picture = model.remember(
      "difference",
      [tree, before, comparison, looks, upward],
      () => new DifferencePicture({ page, tree, looks, upward, categories: categoriesOf(page, tree) }, before, comparison),
    );
    picture.found = foundGroups(page)?.groups ?? null;
    picture.selected = model.selectedGroup();
    const wanted = JSON.stringify(state.zoom);
    if (view.picture !== picture || view.wanted !== wanted) view.show(picture, state.zoom);
    view.wanted = wanted;
    this.normalize.querySelector("input").checked = state.normalize;
    this.facts.textContent = this.factsOf(comparison, picture);
    root.querySelector('[data-letter="0"]').lastChild.data = NO_CHANGE[comparison.kind];
    this.showTable(comparison);
    view.paint();
  }

  /** The line above the graph: the totals of both profiles, and how much of the earlier one no longer occurs. */
  factsOf({ before, after, kind }, picture) {
    const { unit } = this.page;
    const samples = ({ count }) => (unit === "samples" ? "" : ` in ${counted(count, "sample")}`);
    const words = [
      `before ${amount(before.total, unit)}${samples(before)}`,
      `after ${amount(after.total, unit)}${samples(after)}`,
    ];
    if (before.total > 0) words[1] += `, ${relativeChange(before.total, after.total)}`;
    if (kind === "exact" && before.total !== after.total) words.push("the totals differ, so compare amounts, not percentages");
    const gone = picture.gone();
    if (gone > 0) words.push(`${percent(gone, before.total)} of the earlier profile is in calls that no longer occur`);
    return words.join(" · ");
  }

  /** Fills the table with the changed functions: all (`withNoise`), or those that changed by more than noise. */
  showTable(comparison) {
    const { page, model, byTotal, withNoise } = this;
    const changes = model.remember("changes", [comparison, page.groups(), byTotal], () =>
      changedFunctions(page, comparison, byTotal),
    );
    const significant = changes.filter(({ word }) => word !== "noise" && word !== "same");
    const all = counted(changes.length, "function");
    this.count.textContent = {
      samples: `${grouped(significant.length)} of ${all} changed by more than sampling noise`,
      exact: `${grouped(significant.length)} of ${all} changed (measured, not sampled)`,
      nothing: `${all}; changes may be noise (the number of samples is unknown)`,
    }[comparison.kind];
    const shown = (withNoise ? changes : significant).slice(0, MOST_ROWS);
    if (this.shown === changes && this.shownNoise === withNoise) return;
    [this.shown, this.shownNoise] = [changes, withNoise];
    const none = element("tr", {}, element("td", { colspan: "8" }, NONE_CHANGED[comparison.kind] ?? "No function changed"));
    this.table.replaceChildren(...(shown.length > 0 ? shown.map((change) => this.row(change, comparison)) : [none]));
  }

  /** The row of a changed function. A click on it selects the function. */
  row(
    { name, module, before, after, delta, word, number },
    { before: { total: wholeBefore }, after: { total: wholeAfter } },
  ) {
    const select = () => this.page.store.set({ selected: number });
    const cell = (text) => element("td", { class: "number" }, text);
    return element(
      "tr",
      { "data-change": word, onclick: select },
      cell(percent(before.weight, wholeBefore)),
      cell(percent(after.weight, wholeAfter)),
      cell((delta < 0 ? "−" : "+") + Math.abs(delta).toFixed(2)),
      cell(word),
      cell(grouped(before.count)),
      cell(grouped(after.count)),
      element("td", {}, module.slice(0, 200)),
      element(
        "td",
        { class: "name" },
        element("button", { class: "link", title: name.slice(0, 1000), onclick: select }, name.slice(0, 300)),
      ),
    );
  }
}
