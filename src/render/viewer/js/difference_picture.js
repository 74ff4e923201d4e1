// A flame graph of the later profile, colored by the difference from the earlier one.

import { TreePicture } from "./tree_picture.js";

/** The letters of the colors, from much less to much more. */
const STEP_LETTERS = "432105678";

/** The number of colors for more, and for less. */
const STEPS = 4;

export class DifferencePicture extends TreePicture {
  constructor(parts, before, comparison) {
    super(parts);
    Object.assign(this, { before, comparison });
    this.allBefore = comparison.before.total * comparison.scale;
  }

  /** The amount of a node before, as it is compared. */
  amountBefore(node) {
    return this.before.total[node] * this.comparison.scale;
  }

  /** Whether the change of a node is colored. */
  isChange(node) {
    const sum = ({ total, count }) => ({ weight: total[node], count: count[node] });
    return this.comparison.isShown(sum(this.before), sum(this.tree));
  }

  beforeOf(node) {
    const isNoise = this.comparison.kind === "samples" && !this.isChange(node);
    return { amount: this.amountBefore(node), isNoise };
  }

  /** The distance of a color from "no change": from −4 to 4. */
  step(node) {
    if (!this.isChange(node)) return 0;
    const before = this.amountBefore(node), after = this.totalOf(node);
    const part = (after - before) / Math.max(after, before, 1);
    const steps = Math.max(1, Math.ceil(Math.abs(part) * STEPS));
    return part < 0 ? -steps : steps;
  }

  swatchOf(node) {
    return [STEP_LETTERS[this.step(node) + STEPS], 0];
  }

  sharesOf() {
    return [];
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
