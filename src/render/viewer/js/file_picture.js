// The flame graph of an SVG file. The format of the data in the file is documented in src/render/flamegraph/data.rs.

import { scaledAmount } from "./format.js";
import { BoxRows, IDLE, LANE } from "./flame_layout.js";
import { FlamePicture } from "./flame_picture.js";

/** If several boxes within this many pixels are narrower than this, only one of them is drawn. */
const NARROW_BOX = 0.3;
const NARROW_IN_CHART = 1;

const LANE_LETTER = "l";
const IDLE_LETTER = "z";

/** Reads the boxes from the file: [{row, start, end, name, letter, shade, own, shares, before, node}]. Amounts are
 * multiples of the file's unit. */
function readBoxes(svg, isChart) {
  const boxes = [], lanes = [];
  for (const group of svg.querySelectorAll("g[data-b]")) {
    let start = 0;
    for (const record of group.getAttribute("data-b").split(" ")) {
      // `skip` is the distance to the start of the previous box of the group.
      const [row, skip, width, name, color, own = "", shares = "", before = ""] = record.split(",");
      start += Number(skip);
      boxes.push({
        row: Number(row), start, end: start + Number(width), name: Number(name), letter: color[0], shade: Number(color.slice(1)),
        own: own === "" ? null : Number(own), shares: sharesIn(shares), before: beforeIn(before),
      });
    }
  }
  boxes.forEach((box, index) => {
    // Node 0 is the root, which a chart doesn't have.
    box.node = isChart ? index + 1 : index;
    if (box.letter === IDLE_LETTER) box.node = IDLE;
    // Lanes have the numbers LANE, LANE − 1 and so on, which say where they are in `lanes`.
    if (box.letter === LANE_LETTER) box.node = LANE - (lanes.push(box) - 1);
  });
  return { boxes, lanes };
}

/** Parses the shares of tiers, such as `o30b12`: letters, each followed by an amount. */
function sharesIn(text) {
  return Array.from(text.matchAll(/([a-z])(\d+)/g), ([, letter, amount]) => [letter, Number(amount)]);
}

/** Parses the amount in the earlier profile, such as `30~`. A `~` means that the change may be noise. */
function beforeIn(text) {
  return text === "" ? null : { amount: parseInt(text, 10), isNoise: text.endsWith("~") };
}

/** A picture with the boxes of a file. Labels are indices of names. */
export class FilePicture extends FlamePicture {
  /** Reads the picture from the elements of the SVG file: `facts` has JSON, and `names` a name per line. */
  constructor(svg) {
    super();
    const textOf = (id) => svg.querySelector(`#${id}`).textContent;
    const facts = JSON.parse(textOf("facts"));
    this.facts = facts;
    this.names = textOf("names").split("\n");
    const { boxes, lanes } = readBoxes(svg, facts.chart);
    /** All boxes, as `readBoxes` describes them. */
    this.boxes = boxes;
    /** The boxes with the names of threads, which only a chart has. */
    this.lanes = lanes;
    /** True if roots are at the bottom. */
    this.upward = !facts.inverted;
    /** The node of the box in the first row. */
    this.root = 0;
    /** The weight of everything, and in a comparison also that of the earlier profile. */
    this.all = facts.total;
    this.allBefore = facts.before;
    this.truncation = facts.truncation;
    this.whole = { start: 0, end: facts.total };
    /** The boxes of each row, in the order of their starts. */
    this.rows = Array.from({ length: facts.rows }, () => []);
    for (const box of this.boxes) this.rows[box.row].push(box);
  }

  /** The box of a node; undefined for idle times, which have no node of their own. */
  boxOf(node) {
    return node <= LANE ? this.lanes[LANE - node] : this.boxes[node - (this.facts.chart ? 1 : 0)];
  }

  /** The boxes to draw in the range `view`. `pixel` is the width of a pixel, in the units of boxes. */
  layout(view, pixel) {
    const placed = new BoxRows(), narrowest = pixel * (this.facts.chart ? NARROW_IN_CHART : NARROW_BOX);
    for (const row of this.rows) {
      let drawnTo = -Infinity;
      for (let index = firstBehind(row, view.start); index < row.length && row[index].start < view.end; index++) {
        const { node, start, end } = row[index];
        // Of several narrow boxes that are closer together than `narrowest`, only the first is drawn.
        if (end - start < narrowest && end - drawnTo < narrowest) continue;
        placed.add(node, start, end);
        drawnTo = end;
      }
      placed.endRow();
    }
    return placed;
  }

  pathOf(node) {
    return [node];
  }

  /** The range that zooming to a node shows, and the node. The whole picture (node 0) if there is no node to zoom to,
   * or if its box fills the picture anyway. */
  viewOf([node = 0]) {
    const box = node === 0 ? null : this.boxOf(node);
    const isWhole = !box || box.start === box.end || (!this.facts.chart && box.end - box.start === this.all);
    return isWhole ? { ...this.whole, node: 0 } : { start: box.start, end: box.end, node };
  }

  foundPlaces() {
    const found = this.boxes.filter(({ node }) => this.isFound(node));
    return found.sort((a, b) => b.end - b.start - (a.end - a.start) || a.start - b.start || a.row - b.row);
  }

  labelOf(node) {
    return this.boxOf(node).name;
  }

  nameOf(node) {
    return node === IDLE ? "idle" : this.names[this.labelOf(node)];
  }

  titleOf(node) {
    const { nameType } = this.facts;
    return nameType ? `${nameType} ${this.nameOf(node)}` : this.nameOf(node);
  }

  isJit(node) {
    return node >= 0 && this.facts.jit.includes(this.boxOf(node).letter);
  }

  totalOf(node) {
    const { start, end } = this.boxOf(node);
    return end - start;
  }

  ownOf(node) {
    return this.boxOf(node).own;
  }

  beforeOf(node) {
    return this.boxOf(node).before;
  }

  swatchOf(node) {
    const { letter, shade } = this.boxOf(node);
    return [letter, shade];
  }

  sharesOf(node) {
    return node >= 0 ? this.boxOf(node).shares : [];
  }

  kindOf(letter) {
    return this.facts.kinds[letter] ?? "";
  }

  amountText(value) {
    const { unit, factor, scale, counts } = this.facts;
    return scaledAmount(value * unit * factor, scale, counts);
  }

  amountsOf(node, zoomed, start, end) {
    if (!this.facts.chart) return super.amountsOf(node, zoomed);
    return `${this.amountText(end - start)} from ${this.amountText(start)}`;
  }

  /** Marks the functions whose names match; null removes the marks. Returns {count: number of matching functions,
   * weight: of the stacks that contain one, whole: the total weight; in a chart, the time covered by boxes}. */
  search(matches) {
    this.found = matches ? this.names.map(matches) : null;
    const functions = new Set();
    // `foundTo` is the end of the last box that was added to `weight`, and `busyTo` that of the last one added to
    // `busy`. Boxes come in the order of their starts, so a box that starts before such an end is on top of that box.
    let [weight, busy, foundTo, busyTo, last] = [0, 0, 0, 0, 0];
    for (const { node, name, start, end } of this.boxes) {
      // In a chart, each thread starts at the left again.
      if (start < last || node <= LANE) [foundTo, busyTo] = [0, 0];
      last = start;
      if (node <= LANE) continue;
      if (start >= busyTo) [busy, busyTo] = [busy + end - start, end];
      if (!this.isFound(node)) continue;
      functions.add(name);
      // A box on top of a matching box has been counted already.
      if (start >= foundTo) [weight, foundTo] = [weight + end - start, end];
    }
    return { count: functions.size, weight, whole: this.facts.chart ? busy : this.all };
  }
}

/** The index of the first box in a row that ends after this place on the horizontal axis; the number of boxes if none
 * does. */
function firstBehind(row, place) {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].end <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}
