// What a flame graph shows: the colors of boxes, and the text about each. Subclasses make pictures of the page's
// profile (`tree_picture.js`) or of an SVG file (`file_picture.js`); `flame_view.js` displays them.

import { amount, percent, relativeChange } from "./format.js";
import { IDLE, LANE } from "./flame_layout.js";

/** The name of the box that stands for the missing callers of truncated stacks. */
export const CUT_STACK = "[truncated]";

/** The maximum length of the zoomed function's name in the text about other boxes, in letters. */
const MOST_LETTERS_OF_ZOOMED = 60;

/**
 * A picture with boxes for the nodes of a tree. Node 0 is the root, and has no function; `IDLE` and numbers from `LANE`
 * downwards aren't nodes. Pictures of their own kind provide:
 *
 * - `unit`, `all` (the weight of everything; `allBefore` is that of the earlier profile in a comparison), `whole`
 *   ({start, end}, the range of all boxes), `upward` (whether roots are at the bottom), `root` (the node in row 0);
 * - `layout(view, pixel)`, `viewOf(path, span)`, `pathOf(node)`, `foundPlaces(boxes)`;
 * - of a node `nameOf`, `labelOf` (the number that all nodes of its function share), `isJit`, `totalOf`, `swatchOf`
 *   ([letter of its color, hash of its shade]), and what else is known of it; see below.
 */
export class FlamePicture {
  constructor() {
    /** For each label, whether it matches the search; null if nothing is searched for. */
    this.found = null;
    /** The label of the function that is selected on the page; −1 if none is. */
    this.selected = -1;
    /** A sentence that says why stacks are truncated; null if it is unknown. */
    this.truncation = null;
  }

  isFound(node) {
    return node > 0 && this.found !== null && Boolean(this.found[this.labelOf(node)]);
  }

  isSelected(node) {
    return node > 0 && this.labelOf(node) === this.selected;
  }

  /** The colors of a box: {fill, ink}; null if the box has no color. */
  colorOf(node, shades) {
    if (node <= LANE) return null;
    return node === IDLE ? shades.of("z", 0) : shades.of(...this.swatchOf(node));
  }

  /** For a function that ran in several tiers: [[letter of a color, weight]], the heaviest first; otherwise empty. */
  sharesOf() {
    return [];
  }

  /** The self weight of a box's function; null if the box doesn't tell. */
  ownOf() {
    return null;
  }

  /** In a comparison: {amount, isNoise} of the earlier profile; otherwise null. */
  beforeOf() {
    return null;
  }

  /** Lines of text that tell where the function is defined. */
  whereOf() {
    return [];
  }

  /** The kind of code that has the color of this letter; empty if the color doesn't stand for a kind of code. */
  kindOf() {
    return "";
  }

  /** The first line of the text about a box. */
  titleOf(node) {
    return this.nameOf(node);
  }

  amountText(value) {
    return amount(value, this.unit);
  }

  /** The text about a box, as lines; the name comes first. `zoomed` is the node that the view is zoomed to. */
  tell(node, zoomed, start, end) {
    if (node <= LANE) return [this.nameOf(node), "thread"];
    const lines = [this.titleOf(node), ...this.whereOf(node), this.amountsOf(node, zoomed, start, end)];
    if (node !== IDLE) lines.push(this.kindsOf(node), this.changeOf(node));
    if (this.nameOf(node) === CUT_STACK) lines.push(this.truncation ?? "");
    return lines.filter((line) => line !== "");
  }

  /** The text about a node's weight, also as a share of everything and of the node that the view is zoomed to. */
  amountsOf(node, zoomed) {
    const total = this.totalOf(node), words = [this.amountText(total), `${percent(total, this.all)} of all`];
    if (zoomed > 0 && zoomed !== node) {
      words.push(`${percent(total, this.totalOf(zoomed))} of ${shortened(this.nameOf(zoomed))}`);
    }
    const own = node > 0 ? this.ownOf(node) : null;
    if (own !== null) words.push(`self ${this.amountText(own)}, ${percent(own, this.all)}`);
    return words.join(" · ");
  }

  kindsOf(node) {
    const shares = this.sharesOf(node);
    if (shares.length === 0) return this.kindOf(this.swatchOf(node)[0]);
    const all = shares.reduce((sum, [, weight]) => sum + weight, 0);
    return shares.map(([letter, weight]) => `${this.kindOf(letter)} ${percent(weight, all)}`).join(", ");
  }

  /** In a comparison, the text about the amount in the earlier profile and the change since then; otherwise empty. */
  changeOf(node) {
    const before = this.beforeOf(node);
    if (before === null) return "";
    const noise = before.isNoise ? ", may be noise" : "";
    if (before.amount === 0) return `new${noise}`;
    const share = percent(before.amount, this.allBefore), change = relativeChange(before.amount, this.totalOf(node));
    return `before ${this.amountText(Math.round(before.amount))} (${share} of all), ${change}${noise}`;
  }
}

function shortened(name) {
  return name.length > MOST_LETTERS_OF_ZOOMED ? name.slice(0, MOST_LETTERS_OF_ZOOMED - 1) + "…" : name;
}
