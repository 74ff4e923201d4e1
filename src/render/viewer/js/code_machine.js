// The machine code of one listing: a row an instruction, with what it cost, jump arrows, and what it leads to.

import { ARROWS_WIDTH, drawArrows, jumpArrows } from "./arrows.js";
import { listingRows } from "./code_rows.js";
import { element } from "./dom.js";
import { grouped, percent } from "./format.js";
import { VirtualRows } from "./virtual_rows.js";

const MACHINE_ROW = 18;

/** The cells of a cost: percent and samples for each event; empty where it cost nothing. */
export function costCells(events, costOf) {
  return events.flatMap((event) => {
    const { part, whole, count } = costOf(event);
    const heat = whole > 0 ? part / whole : 0;
    return [
      element("span", { class: "cost-percent", style: heat > 0 ? `--heat:${Math.sqrt(heat).toFixed(3)}` : null },
        count > 0 ? percent(part, whole) : ""),
      element("span", { class: "cost-count" }, count > 0 ? grouped(count) : ""),
    ];
  });
}

/** The pane of the machine code. */
export class MachinePane {
  #list;
  #canvas;
  #view = null;
  #rows = new Int32Array(0);
  #rowOf = new Map();
  #arrows = [];
  #wanted = -1;

  /**
   * @param {HTMLElement} root
   * @param {{follow: (at: number) => void, moved: (at: number) => void}} calls follow: a target out of the listing was
   *   chosen; moved: the cursor is on another instruction
   */
  constructor(root, calls) {
    this.calls = calls;
    this.#list = new VirtualRows(root, MACHINE_ROW, (row) => this.#row(row));
    this.#canvas = element("canvas", { class: "arrows", "aria-hidden": "true" });
    this.#list.inner.append(this.#canvas);
    this.#list.ondrawn = (first, last) => {
      drawArrows(this.#canvas, this.#arrows, { first, last, height: MACHINE_ROW, cursor: this.#list.cursor });
    };
    root.addEventListener("click", (event) => this.#clicked(event));
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  /**
   * Shows a listing.
   * @param {object} view {listings, instructions, listing, costs, events: the numbers of those that have columns,
   *   wholes: by event what percentages are of, weightOf: (cost) => the column that is summed, hotOnly, found: Set|null,
   *   marked: (at) => whether it is of the source line that is chosen}
   */
  show(view) {
    const { listings, instructions, listing, costs, hotOnly, found } = view;
    const [from, to] = [listings.first[listing], listings.first[listing + 1]];
    const at = this.cursor;
    const isHot = (at) => costs.some((cost) => cost.count[at] > 0);
    const wanted = hotOnly ? (at) => isHot(at) || at === this.#wanted || (found?.has(at) ?? false) : null;
    ({ rows: this.#rows, rowOf: this.#rowOf } = listingRows(from, to, wanted));
    this.#arrows = jumpArrows(this.#rows, this.#rowOf, instructions);
    this.#view = view;
    const moved = this.#rowOf.get(at) ?? -1;
    const stays = moved === this.#list.cursor;
    this.#list.cursor = moved;
    this.#list.reset(this.#rows.length);
    // With other lines around it the cursor stays in sight.
    if (!stays && moved >= 0) this.#list.show(moved, true);
  }

  /** The instruction at the cursor; -1: none. */
  get cursor() {
    return this.#rows[this.#list.cursor] ?? -1;
  }

  /** The instructions that are shown, in order. */
  get shown() {
    return this.#rows.filter((at) => at >= 0);
  }

  /** Puts the cursor on an instruction, which is shown from then on. */
  moveTo(at, centred = true) {
    if (!this.#rowOf.has(at)) {
      this.#wanted = at;
      this.show(this.#view);
    }
    if (!this.#rowOf.has(at)) return;
    this.#list.moveTo(this.#rowOf.get(at), centred);
    this.calls.moved(at);
  }

  /** Draws again, where only marks changed. */
  draw() {
    this.#list.draw();
  }

  #row(row) {
    const at = this.#rows[row];
    if (at < 0) {
      const left = -1 - at;
      return element("div", { class: "machine-row gap" },
        element("span", { class: "gap-room" }), element("span", { class: "arrow-room", style: `width:${ARROWS_WIDTH}px` }),
        `⋮ ${grouped(left)} instruction${left === 1 ? "" : "s"} without samples`);
    }
    const { listings, instructions, listing, costs, events, wholes, weightOf, found, marked } = this.#view;
    const cost = (event) => ({
      part: weightOf(costs[event])[at], whole: wholes[event], count: costs[event].count[at],
    });
    const classes = ["machine-row"];
    if (row === this.#list.cursor) classes.push("cursor");
    if (marked(at)) classes.push("marked");
    if (found?.has(at)) classes.push("found");
    const address = (listings.address(listing) ?? 0n) + BigInt(instructions.offset[at]);
    return element("div", { class: classes.join(" "), "data-offset": instructions.offset[at] },
      ...costCells(events, cost),
      element("span", { class: "address" }, address.toString(16)),
      element("span", { class: "arrow-room", style: `width:${ARROWS_WIDTH}px` }),
      element("span", { class: "instruction" }, instructions.text(at).padEnd(6), ...this.#target(at, address)),
      element("span", { class: "line-number" }, this.#lineNumber(row, at)));
  }

  #lineNumber(row, at) {
    const { instructions } = this.#view;
    const before = row > 0 ? this.#rows[row - 1] : -1;
    const isSame = before >= 0 && instructions.file[before] === instructions.file[at]
      && instructions.line[before] === instructions.line[at];
    return instructions.file[at] && !isSame ? `:${instructions.line[at]}` : "";
  }

  /** The target of an instruction. */
  #target(at, address) {
    const { listings, instructions, listing } = this.#view;
    const inside = instructions.inside[at];
    if (inside >= 0) {
      const target = address - BigInt(instructions.offset[at]) + BigInt(instructions.offset[inside]);
      return [" ", element("span", { class: "target", "data-to": inside }, target.toString(16))];
    }
    const out = instructions.out(at);
    if (!out) return [];
    const name = out.name ? `${out.name}${out.offset ? `+0x${out.offset.toString(16)}` : ""}` : "";
    const isBranch = out.kind === "jump" || out.kind === "call";
    const where = out.address === null ? "" : out.address.toString(16);
    const words = isBranch ? [where, name && `<${name}>`] : [`# ${where}`, name && `<${name}>`];
    const text = words.filter(Boolean).join(" ");
    const isHere = out.name !== "" && listings.at(out.name, out.address ?? 0n) >= 0;
    return [" ", isHere
      ? element("span", { class: "target", "data-out": at, title: out.name }, text)
      : element("span", { class: "elsewhere", title: out.name }, text)];
  }

  #clicked(event) {
    const target = event.target.closest(".target");
    if (target?.dataset.to) return this.moveTo(Number(target.dataset.to));
    if (target?.dataset.out) return this.calls.follow(Number(target.dataset.out));
    const row = VirtualRows.rowOf(event);
    if (row < 0) return;
    if (this.#rows[row] < 0) return this.#open(row);
    this.#list.moveTo(row);
    this.calls.moved(this.#rows[row]);
  }

  /** The middle of a gap that was clicked at is shown, with what is around it. */
  #open(row) {
    const after = this.#rows[row + 1] ?? -1;
    const left = -1 - this.#rows[row];
    const { listings, listing } = this.#view;
    const end = after >= 0 ? after : listings.first[listing + 1];
    this.moveTo(end - Math.ceil(left / 2));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.cursor;
    if (event.key === "Enter" && at >= 0) {
      const { instructions } = this.#view;
      if (instructions.inside[at] >= 0) this.moveTo(instructions.inside[at]);
      else if (instructions.out(at)) this.calls.follow(at);
    } else if (event.key === "n" || event.key === "N") this.#hot(event.key === "n");
    else if (this.#list.key(event.key)) {
      if (this.cursor >= 0) this.calls.moved(this.cursor);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** From one hot instruction to the next cooler one, or back; from anywhere else to the hottest. */
  #hot(cooler) {
    const { costs, events, weightOf } = this.#view;
    const weights = weightOf(costs[events[0]]);
    const hot = [...this.shown].filter((at) => weights[at] > 0).sort((a, b) => weights[b] - weights[a] || a - b);
    if (hot.length === 0) return;
    const place = hot.indexOf(this.cursor);
    const next = place < 0 ? 0 : place + (cooler ? 1 : -1);
    this.moveTo(hot[Math.max(0, Math.min(next, hot.length - 1))]);
  }
}
