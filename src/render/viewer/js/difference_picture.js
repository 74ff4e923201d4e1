// A flame graph of the later profile, colored by the difference from the earlier one.

import { TreePicture } from "./tree_picture.js";

/** The letters of the colors, from the strongest decrease to the strongest increase. */
const STEP_LETTERS = "432105678";

/** The number of colors for increases, and the number of colors for decreases. */
const STEPS = 4;

export class DifferencePicture extends TreePicture {
  /** `parts` are those of a `TreePicture`. `before` is the same tree with the weights of the earlier profile, and
   * `comparison` a `Comparison`. */
  constructor(parts, before, comparison) {
    super(parts);
    Object.assign(this, { before, comparison });
    this.allBefore = comparison.before.total * comparison.scale;
  }

  /** A node's amount in the earlier profile, scaled as the comparison requires. */
  amountBefore(node) {
    return this.before.total[node] * this.comparison.scale;
  }

  /** True if the change of a node is colored. */
  isChange(node) {
    const sum = ({ total, count }) => ({ weight: total[node], count: count[node] });
    return this.comparison.isShown(sum(this.before), sum(this.tree));
  }

  beforeOf(node) {
    const isNoise = this.comparison.kind === "samples" && !this.isChange(node);
    return { amount: this.amountBefore(node), isNoise };
  }

  /** The color of a node's change, from −4 (much less) to 4 (much more); 0 means "no change". */
  step(node) {
    if (!this.isChange(node)) return 0;
    const before = this.amountBefore(node), after = this.totalOf(node);
    const relativeChange = (after - before) / Math.max(after, before, 1);
    const steps = Math.max(1, Math.ceil(Math.abs(relativeChange) * STEPS));
    return relativeChange < 0 ? -steps : steps;
  }

  swatchOf(node) {
    return [STEP_LETTERS[this.step(node) + STEPS], 0];
  }

  sharesOf() {
    return [];
  }

  /** The amount of the earlier profile's boxes that have no counterpart in the later one, although their callers
   * have. */
  gone() {
    const { tree, before } = this;
    let sum = 0;
    for (let node = 1; node < tree.length; node++) {
      if (!(tree.total[node] > 0) && tree.total[tree.parent[node]] > 0) sum += before.total[node];
    }
    return sum;
  }
}
