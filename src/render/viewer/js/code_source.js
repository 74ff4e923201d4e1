// The source pane beside a listing: the source lines of its instructions, with their cost.

import { costCells } from "./code_machine.js";
import { sourceLines, sourceRows } from "./code_rows.js";
import { element } from "./dom.js";
import { counted } from "./format.js";
import { VirtualRows } from "./virtual_rows.js";

const SOURCE_ROW = 18;

/** The number of a path's last components that are shown. */
const SHOWN_PARTS = 2;

/** The source pane. */
export class SourcePane {
  #list;
  #rows = [];
  #view = null;

  /** @param {(file: number, line: number) => void} chosen called when a line is clicked or selected by keyboard */
  constructor(root, chosen) {
    this.#list = new VirtualRows(root, SOURCE_ROW, (row) => this.#row(row));
    const choose = (row) => {
      const { file, line } = this.#rows[row] ?? {};
      if (line === undefined) return this.#list.draw();
      chosen(file, line);
    };
    root.addEventListener("click", (event) => {
      const row = VirtualRows.rowOf(event);
      if (row < 0) return;
      this.#list.moveTo(row);
      choose(row);
    });
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.#list.key(event.key)) return;
      choose(this.#list.cursor);
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** Shows the source of a listing; see MachinePane.show. Besides what is described there, `view` has weighted: whether
   * percentages are those of weights instead of numbers of samples, and isChosen(file, line): whether a line is
   * selected. */
  show(view) {
    const { listings, instructions, listing, costs, hotOnly } = view;
    const lines = sourceLines(instructions, listings.first[listing], listings.first[listing + 1], costs);
    this.#rows = sourceRows(lines, instructions, hotOnly);
    this.#view = view;
    this.#list.reset(this.#rows.length);
  }

  /** True if the listing has no source lines. */
  get isEmpty() {
    return this.#rows.length === 0;
  }

  /** True if the page has the text of at least one of the lines. */
  get hasText() {
    return this.#rows.some(({ file, line }) => line !== undefined && this.#view.instructions.lineText(file, line) !== undefined);
  }

  /** Scrolls to a line. */
  reveal(file, line) {
    const row = this.#rows.findIndex((row) => row.file === file && row.line === line);
    if (row >= 0) {
      this.#list.cursor = row;
      this.#list.show(row);
    } else this.#list.draw();
  }

  /** The element for a row: a gap, the head of a file, or a line with its cost and text (see `sourceRows`). */
  #row(row) {
    const { file, line, sums, gap } = this.#rows[row];
    const { instructions, events, wholes, weighted, isChosen } = this.#view;
    if (gap) return element("div", { class: "source-row gap" }, `⋮ ${counted(gap, "line")}`);
    if (line === undefined) {
      const name = instructions.fileName(file - 1) ?? "", parts = name.split("/");
      // There is little room, and the end of a path tells most.
      const short = parts.length > SHOWN_PARTS + 1 ? `…/${parts.slice(-SHOWN_PARTS).join("/")}` : name;
      const text = instructions.hasText(file) ? short : `${short} (source text not available)`;
      return element("div", { class: "source-row file", title: name }, text);
    }
    const cost = (event) => ({
      part: sums ? (weighted ? sums.weight[event] : sums.count[event]) : 0,
      whole: wholes[event],
      count: sums ? sums.count[event] : 0,
    });
    const text = instructions.lineText(file, line);
    return element("div", { class: isChosen(file, line) ? "source-row marked" : "source-row", "data-line": line },
      ...costCells(events.slice(0, 1), cost),
      element("span", { class: "line-number" }, String(line)),
      element("span", { class: "source-text", title: text ?? null }, text ?? ""));
  }
}
