// Computes where the boxes of a call tree are, without any drawing.

/** In place of a node number: a time during which the thread was idle. */
export const IDLE = -1;

/** Boxes with the name of a lane have the number `LANE − index of the lane`. */
export const LANE = -2;

/** Boxes, row by row and from left to right. */
export class BoxRows {
  constructor() {
    /** The number of the first box in each row. A last entry is the number of all boxes. */
    this.first = [0];
    /** For each box: its node, and where it starts and ends on the horizontal axis. */
    this.node = [];
    this.start = [];
    this.end = [];
  }

  /** The number of rows. */
  get rows() {
    return this.first.length - 1;
  }

  get length() {
    return this.node.length;
  }

  add(node, start, end) {
    this.node.push(node);
    this.start.push(start);
    this.end.push(end);
  }

  endRow() {
    this.first.push(this.node.length);
  }

  /** Removes the first row. */
  dropFirstRow() {
    const gone = this.first[1] ?? 0;
    for (const column of [this.node, this.start, this.end]) column.splice(0, gone);
    this.first = this.first.slice(1).map((first) => first - gone);
    if (this.first.length === 0) this.first = [0];
  }

  /** The box of a row at a place on the horizontal axis, or the nearest box within the distance `slack`; −1 if there is
   * none. */
  at(row, place, slack) {
    if (row < 0 || row >= this.rows) return -1;
    // Find the first box that ends after the place.
    let [low, high] = [this.first[row], this.first[row + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] <= place) low = middle + 1;
      else high = middle;
    }
    // That box contains the place, or begins soon after it. If not, the box before it may end shortly before the place.
    if (low < this.first[row + 1] && this.start[low] <= place) return low;
    if (low < this.first[row + 1] && this.start[low] - place <= slack) return low;
    return low > this.first[row] && place - this.end[low - 1] <= slack ? low - 1 : -1;
  }

  /** The row of a box. */
  rowOf(box) {
    let [low, high] = [0, this.rows];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.first[middle] <= box) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The box of this node in a row; −1 if there is none. */
  find(row, node) {
    if (row < 0 || row >= this.rows) return -1;
    for (let box = this.first[row]; box < this.first[row + 1]; box++) if (this.node[box] === node) return box;
    return -1;
  }
}

/** Lays out the boxes of a tree that are in the range `view` ({start, end}) and weigh at least `narrowest`. The box
 * of `root` is in row 0. */
export function layoutTree(tree, view, narrowest, root = 0) {
  const boxes = new BoxRows();
  if (!(tree.total[root] > 0)) return boxes;
  boxes.add(root, 0, tree.total[root]);
  boxes.endRow();
  // Each row has the children of the boxes in the row before it. Stop at an empty row, which is then removed.
  for (let row = 0; boxes.first[row] < boxes.first[row + 1]; row++) {
    for (let box = boxes.first[row]; box < boxes.first[row + 1]; box++) {
      layoutChildren(tree, boxes.node[box], boxes.start[box], view, narrowest, boxes);
    }
    boxes.endRow();
  }
  boxes.first.pop();
  return boxes;
}

/** Adds the boxes of a node's children to the current row, from left to right. `from` is where the node's box
 * starts. */
function layoutChildren(tree, node, from, view, narrowest, boxes) {
  const { first, next, total } = tree;
  let start = from;
  for (let child = first[node]; child >= 0 && start < view.end; child = next[child]) {
    // Children that are too narrow or out of sight take up their space but get no box.
    const end = start + total[child];
    if (total[child] >= narrowest && total[child] > 0 && end > view.start) boxes.add(child, start, end);
    start = end;
  }
}

/** The place where the box of a node starts. */
export function startOfNode(tree, node) {
  let start = 0;
  // Add the weights of all siblings to the left, of the node and of its callers.
  for (let at = node; at > 0; at = tree.parent[at]) {
    for (let before = tree.first[tree.parent[at]]; before !== at; before = tree.next[before]) start += tree.total[before];
  }
  return start;
}

/** The groups of the nodes on the path from the root's child to a node. */
export function pathOfNode(tree, node) {
  const path = [];
  for (let at = node; at > 0; at = tree.parent[at]) path.push(tree.group[at]);
  return path.reverse();
}

/** Follows a path of groups from the root as far as the tree has it, and returns the last node. */
export function nodeOfPath(tree, path) {
  let node = 0;
  for (const wanted of path) {
    let child = tree.first[node];
    while (child >= 0 && tree.group[child] !== wanted) child = tree.next[child];
    if (child < 0) break;
    node = child;
  }
  return node;
}
