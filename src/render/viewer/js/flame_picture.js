// What a flame graph shows, whatever it is made of: the colors of boxes, and the text about each of them. A picture is
// made of the page's profile (`tree_picture.js`) or of an SVG file (`file_picture.js`); `flame_view.js` shows it.

import { amount, percent, relativeChange } from "./format.js";
import { IDLE, LANE } from "./flame_layout.js";

/** Zoomed functions are named in the text about other boxes, with at most so many letters. */
const MOST_LETTERS_OF_ZOOMED = 60;

/**
 * A picture with boxes for the nodes of a tree. Node 0 is the root, and has no function; `IDLE` and numbers from `LANE`
 * downwards aren't nodes. Pictures of their own kind provide:
 *
 * - `unit`, `all` (the weight of everything), `whole` ({start, end}, the range of all boxes);
 * - `layout(view, pixel)`, `viewOf(path, span)`, `pathOf(node)`, `foundPlaces(boxes)`;
 * - of a node `nameOf`, `labelOf` (the number that all nodes of its function share), `isJit`, `totalOf`, `swatchOf`
 *   ([letter of its color, hash of its shade]), and what else is known of it; see below.
 */
export class FlamePicture {
  constructor() {
    /** By label, whether it was searched for; null: nothing is. */
    this.found = null;
    /** The label that all parts of the page show; −1: none. */
    this.selected = -1;
  }

  isFound(node) {
    return node > 0 && this.found !== null && Boolean(this.found[this.labelOf(node)]);
  }

  isSelected(node) {
    return node > 0 && this.labelOf(node) === this.selected;
  }

  /** {fill, ink}; null for boxes without a color. */
  colorOf(node, shades) {
    if (node <= LANE) return null;
    return node === IDLE ? shades.of("z", 0) : shades.of(...this.swatchOf(node));
  }

  /** [[letter of a color, weight]] of a function that ran in several tiers, the heaviest first; else empty. */
  sharesOf() {
    return [];
  }

  /** What ran in the function of a box itself; null if the box doesn't tell. */
  ownOf() {
    return null;
  }

  /** In a picture that compares: {amount, isNoise} of the earlier profile. */
  beforeOf() {
    return null;
  }

  /** Lines about where the function is from. */
  whereOf() {
    return [];
  }

  /** The kind of code with the color of this letter; empty if the color isn't one of code. */
  kindOf() {
    return "";
  }

  /** How the name of a box is introduced. */
  titleOf(node) {
    return this.nameOf(node);
  }

  amountText(value) {
    return amount(value, this.unit);
  }

  /** The text about a box, in lines, the name first. `zoomed` is the node that is zoomed to. */
  tell(node, zoomed, start, end) {
    if (node <= LANE) return [this.nameOf(node), "thread"];
    const lines = [this.titleOf(node), ...this.whereOf(node), this.amountsOf(node, zoomed, start, end)];
    if (node !== IDLE) lines.push(this.kindsOf(node), this.changeOf(node));
    return lines.filter((line) => line !== "");
  }

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
