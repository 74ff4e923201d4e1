// A flame graph of the later profile, colored by the difference from the earlier one.

import { TreePicture } from "./flame_picture.js";
import { amount, percent } from "./format.js";

/** The letters of the colors, from much less to much more. */
const STEP_LETTERS = "432105678";

/** The number of colors for more, and for less. */
const STEPS = 4;

export class DifferencePicture extends TreePicture {
  constructor(parts, before, comparison) {
    super(parts);
    this.before = before;
    this.comparison = comparison;
  }

  /** The amount of a node before, as it is compared. */
  amountBefore(node) {
    return this.before.total[node] * this.comparison.scale;
  }

  isChance(node) {
    const sum = ({ total, count }) => ({ weight: total[node], count: count[node] });
    return !this.comparison.isShown(sum(this.before), sum(this.tree));
  }

  /** The distance of a color from "no change": from −4 to 4. */
  step(node) {
    if (this.isChance(node)) return 0;
    const before = this.amountBefore(node),
      after = this.tree.total[node];
    const part = (after - before) / Math.max(after, before, 1);
    const steps = Math.max(1, Math.ceil(Math.abs(part) * STEPS));
    return part < 0 ? -steps : steps;
  }

  colourOf(node, shades) {
    return shades.of(STEP_LETTERS[this.step(node) + STEPS], 0);
  }

  sharesOf() {
    return [];
  }

  tell(node, zoomed) {
    return [this.nameOf(node), ...this.whereOf(node), this.amountsOf(node, zoomed), this.changeOf(node)];
  }

  changeOf(node) {
    const { unit } = this.page,
      chance = this.comparison.kind === "samples" && this.isChance(node) ? ", may be noise" : "";
    const before = this.amountBefore(node),
      after = this.tree.total[node];
    if (before === 0) return `new${chance}`;
    const change = (100 * (after - before)) / before;
    return `before ${amount(Math.round(before), unit)} (${percent(this.before.total[node], this.comparison.before.total)} of all), ${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)}%${chance}`;
  }

  /** The amount of earlier boxes that have no counterpart, though its callers have. */
  gone() {
    const { tree, before } = this;
    let sum = 0;
    for (let node = 1; node < tree.length; node++) {
      if (!(tree.total[node] > 0) && tree.total[tree.parent[node]] > 0) sum += before.total[node];
    }
    return sum;
  }
}
