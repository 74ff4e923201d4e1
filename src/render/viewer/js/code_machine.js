// The machine code of one listing: a row per instruction, with its cost, jump arrows, and its target.

import { ARROWS_WIDTH, drawArrows, jumpArrows } from "./arrows.js";
import { listingRows } from "./code_rows.js";
import { element } from "./dom.js";
import { grouped, percent } from "./format.js";
import { VirtualRows } from "./virtual_rows.js";

const MACHINE_ROW = 18;

/** The cells of a cost: a percentage and a count for each event. Cells are empty if the cost is 0. */
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

/** The pane with the machine code. */
export class MachinePane {
  #list;
  #canvas;
  /** What `show` was called with last. */
  #view = null;
  /** The instruction of each row, and the row of each instruction (see `listingRows`). */
  #rows = new Int32Array(0);
  #rowOf = new Map();
  #arrows = [];
  /** The hidden instruction to which the cursor was moved last, and which is shown because of that; -1 if none. */
  #wanted = -1;

  /**
   * @param {HTMLElement} root
   * @param {{follow: (at: number) => void, moved: (at: number) => void}} calls follow: called when a target outside
   *   the listing is chosen; moved: called when the cursor moves to another instruction
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
   * @param {object} view {listings, instructions, listing, costs, events: the events that have columns, wholes: for
   *   each event, the amount that is 100%, weightOf: (cost) => the column to sum, hotOnly: whether to hide
   *   instructions without samples, found: the Set of instructions that match the search, or null, marked: (at) =>
   *   whether the instruction belongs to the selected source line}
   */
  show(view) {
    const { listings, instructions, listing, costs, hotOnly, found } = view;
    const [from, to] = [listings.first[listing], listings.first[listing + 1]];
    // The instruction at the cursor, to find its new row.
    const atCursor = this.cursor;
    const isHot = (number) => costs.some((cost) => cost.count[number] > 0);
    // With `hotOnly`, also show the matches of the search, and the last hidden instruction to which the cursor was
    // moved.
    const isWanted = (number) => isHot(number) || number === this.#wanted || (found?.has(number) ?? false);
    ({ rows: this.#rows, rowOf: this.#rowOf } = listingRows(from, to, hotOnly ? isWanted : null));
    this.#arrows = jumpArrows(this.#rows, this.#rowOf, instructions);
    this.#view = view;
    const newRow = this.#rowOf.get(atCursor) ?? -1;
    const hasMoved = newRow !== this.#list.cursor;
    this.#list.cursor = newRow;
    this.#list.reset(this.#rows.length);
    // If the cursor's instruction is in another row now, keep it in view.
    if (hasMoved && newRow >= 0) this.#list.show(newRow, true);
  }

  /** The instruction at the cursor; -1 if there is none. */
  get cursor() {
    return this.#rows[this.#list.cursor] ?? -1;
  }

  /** The visible instructions, in order. */
  get shown() {
    return this.#rows.filter((at) => at >= 0);
  }

  /** Moves the cursor to an instruction, and shows the instruction if it is hidden. */
  moveTo(instruction, centered = true) {
    if (!this.#rowOf.has(instruction)) {
      this.#wanted = instruction;
      this.show(this.#view);
    }
    if (!this.#rowOf.has(instruction)) return;
    this.#list.moveTo(this.#rowOf.get(instruction), centered);
    this.calls.moved(instruction);
  }

  /** Redraws the rows after marks have changed. */
  draw() {
    this.#list.draw();
  }

  /** The element for a row: costs, address, instruction, target and line number, or a gap (see `listingRows`). */
  #row(row) {
    const instruction = this.#rows[row];
    if (instruction < 0) {
      // −1 − n stands for a gap of n instructions.
      const left = -1 - instruction;
      return element("div", { class: "machine-row gap" },
        element("span", { class: "gap-room" }), element("span", { class: "arrow-room", style: `width:${ARROWS_WIDTH}px` }),
        `⋮ ${grouped(left)} instruction${left === 1 ? "" : "s"} without samples`);
    }
    const { listings, instructions, listing, costs, events, wholes, weightOf, found, marked } = this.#view;
    const cost = (event) => ({
      part: weightOf(costs[event])[instruction], whole: wholes[event], count: costs[event].count[instruction],
    });
    const classes = ["machine-row"];
    if (row === this.#list.cursor) classes.push("cursor");
    if (marked(instruction)) classes.push("marked");
    if (found?.has(instruction)) classes.push("found");
    const address = (listings.address(listing) ?? 0n) + BigInt(instructions.offset[instruction]);
    return element("div", { class: classes.join(" "), "data-offset": instructions.offset[instruction] },
      ...costCells(events, cost),
      element("span", { class: "address" }, address.toString(16)),
      element("span", { class: "arrow-room", style: `width:${ARROWS_WIDTH}px` }),
      element("span", { class: "instruction" }, instructions.text(instruction).padEnd(6), ...this.#target(instruction, address)),
      element("span", { class: "line-number" }, this.#lineNumber(row, instruction)));
  }

  /** The line number to show for an instruction; empty if it is unknown, or the same as in the row above. */
  #lineNumber(row, instruction) {
    const { instructions } = this.#view;
    // The instruction in the row above; negative for a gap.
    const before = row > 0 ? this.#rows[row - 1] : -1;
    const isSame = before >= 0 && instructions.file[before] === instructions.file[instruction]
      && instructions.line[before] === instructions.line[instruction];
    return instructions.file[instruction] && !isSame ? `:${instructions.line[instruction]}` : "";
  }

  /** The elements for the target of an instruction: a link to another instruction of this listing, or the address and
   * name of a target elsewhere, which is a link if that has a listing, too. */
  #target(instruction, address) {
    const { listings, instructions, listing } = this.#view;
    const inside = instructions.inside[instruction];
    if (inside >= 0) {
      const target = address - BigInt(instructions.offset[instruction]) + BigInt(instructions.offset[inside]);
      return [" ", element("span", { class: "target", "data-to": inside }, target.toString(16))];
    }
    const out = instructions.out(instruction);
    if (!out) return [];
    const name = out.name ? `${out.name}${out.offset ? `+0x${out.offset.toString(16)}` : ""}` : "";
    const isBranch = out.kind === "jump" || out.kind === "call";
    const where = out.address === null ? "" : out.address.toString(16);
    const words = isBranch ? [where, name && `<${name}>`] : [`# ${where}`, name && `<${name}>`];
    const text = words.filter(Boolean).join(" ");
    const hasListing = out.name !== "" && listings.at(out.name, out.address ?? 0n) >= 0;
    return [" ", hasListing
      ? element("span", { class: "target", "data-out": instruction, title: out.name }, text)
      : element("span", { class: "elsewhere", title: out.name }, text)];
  }

  /** Handles a click: follows a target, opens a gap, or moves the cursor to the instruction. */
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

  /** Shows the instruction in the middle of a gap that was clicked, and the instructions around it. */
  #open(row) {
    // The gap stands for the `hidden` instructions before `end`.
    const hidden = -1 - this.#rows[row];
    const after = this.#rows[row + 1] ?? -1;
    const { listings, listing } = this.#view;
    const end = after >= 0 ? after : listings.first[listing + 1];
    this.moveTo(end - Math.ceil(hidden / 2));
  }

  /** Handles a key: Enter follows the target at the cursor, n and N go to the next cooler or hotter instruction, and
   * arrows move the cursor. */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const current = this.cursor;
    if (event.key === "Enter" && current >= 0) {
      const { instructions } = this.#view;
      if (instructions.inside[current] >= 0) this.moveTo(instructions.inside[current]);
      else if (instructions.out(current)) this.calls.follow(current);
    } else if (event.key === "n" || event.key === "N") this.#hot(event.key === "n");
    else if (this.#list.key(event.key)) {
      if (this.cursor >= 0) this.calls.moved(this.cursor);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Moves to the next cooler hot instruction, or to the next hotter one. From any other instruction, moves to the
   * hottest. */
  #hot(cooler) {
    const { costs, events, weightOf } = this.#view;
    const weights = weightOf(costs[events[0]]);
    // The visible instructions with samples, the hottest first.
    const hot = [...this.shown].filter((number) => weights[number] > 0).sort((a, b) => weights[b] - weights[a] || a - b);
    if (hot.length === 0) return;
    const current = hot.indexOf(this.cursor);
    const next = current < 0 ? 0 : current + (cooler ? 1 : -1);
    this.moveTo(hot[Math.max(0, Math.min(next, hot.length - 1))]);
  }
}
