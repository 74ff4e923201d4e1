// Jump arrows beside a listing: assigns each arrow to a lane, and draws the visible ones.

import { sharpened, styleColor } from "./dom.js";

const LANES = 7;
const LANE_WIDTH = 8;
/** The width of all lanes and the arrowheads, in pixels. */
export const ARROWS_WIDTH = LANES * LANE_WIDTH + 12;

/** The length, in rows, up to which jumps are drawn as a whole. Of longer ones, only the start is drawn unless the
 * cursor is on them, because most of the line would be out of sight. */
const LONGEST = 300;

/**
 * The jumps between rows of the listing. Short jumps get the lanes next to the code.
 * @returns {{from: number, to: number, lane: number}[]} from, to: rows, with -1 for a target that is hidden; lane: -1
 *   if the target is hidden, the jump is too long, or there is no room
 */
export function jumpArrows(rows, rowOf, instructions) {
  const arrows = [];
  rows.forEach((instruction, row) => {
    // Only jumps (kind 1) to an instruction of the same listing get arrows. A negative `instruction` is a gap between
    // rows.
    if (instruction < 0 || instructions.inside[instruction] < 0 || instructions.targetKind[instruction] !== 1) return;
    const to = rowOf.get(instructions.inside[instruction]);
    arrows.push({ from: row, to: to ?? -1, lane: -1 });
  });
  const lengthOf = ({ from, to }) => Math.abs(to - from);
  // For each lane, the rows where an arrow has been placed already.
  const taken = Array.from({ length: LANES }, () => new Uint8Array(rows.length));
  const inPlace = arrows.filter((arrow) => arrow.to >= 0 && lengthOf(arrow) <= LONGEST);
  // Give each arrow the first lane in which all of its rows are free. Shorter arrows come first, so that they get the
  // lanes next to the code.
  for (const arrow of inPlace.sort((a, b) => lengthOf(a) - lengthOf(b) || a.from - b.from)) {
    const [low, high] = [Math.min(arrow.from, arrow.to), Math.max(arrow.from, arrow.to)];
    arrow.lane = taken.findIndex((lane) => lane.subarray(low, high + 1).every((used) => !used));
    if (arrow.lane >= 0) taken[arrow.lane].fill(1, low, high + 1);
  }
  return arrows;
}

/** Draws the arrows that touch the rows from `first` up to, but not including, `last`. `height` is that of a row.
 * Arrows at the cursor are highlighted. */
export function drawArrows(canvas, arrows, { first, last, height, cursor }) {
  const context = sharpened(canvas, ARROWS_WIDTH, Math.max(1, (last - first) * height));
  canvas.style.transform = `translateY(${first * height}px)`;
  const isAtCursor = ({ from, to }) => from === cursor || to === cursor;
  const inSight = arrows.filter(({ from, to }) => {
    // An arrow to a hidden row (−1) is only drawn where it starts.
    const end = to < 0 ? from : to;
    return Math.max(from, end) >= first && Math.min(from, end) < last;
  });
  // Draw the highlighted arrows last, on top of the others.
  for (const chosen of [false, true]) {
    context.strokeStyle = context.fillStyle = styleColor(chosen ? "--accent" : "--faint");
    context.lineWidth = chosen ? 1.6 : 1;
    for (const arrow of inSight) {
      if (isAtCursor(arrow) === chosen) drawArrow(context, arrow, (row) => (row - first + 0.5) * height, chosen);
    }
  }
}

/** Draws a jump as a line with an arrowhead at its target. `y(row)` is the middle of a row in pixels. `chosen`: the
 * arrow is at the cursor, so its line is drawn even if it has no lane. */
function drawArrow(context, { from, to, lane }, y, chosen) {
  const right = ARROWS_WIDTH - 3;
  if (to < 0 || (lane < 0 && !chosen)) {
    // The jump's target is hidden, or the arrow has no lane: only draw the start of the jump.
    drawStub(context, right, y(from), to < 0 ? 0 : Math.sign(to - from));
    return;
  }
  // Lane 0 is next to the code. A highlighted arrow without a lane is drawn to the left of all lanes.
  const x = right - 9 - (lane < 0 ? LANES : lane) * LANE_WIDTH;
  // The line: from the jump to its lane, along the lane, and back to the target.
  context.beginPath();
  context.moveTo(right, y(from));
  context.lineTo(x, y(from));
  context.lineTo(x, y(to));
  context.lineTo(right - 4, y(to));
  context.stroke();
  context.beginPath();
  // The arrowhead at the target.
  context.moveTo(right, y(to));
  context.lineTo(right - 5, y(to) - 3);
  context.lineTo(right - 5, y(to) + 3);
  context.fill();
}

/** Draws the start of a jump without its line. `direction` is that of the jump: −1 up, 1 down, 0 to a hidden row. */
function drawStub(context, right, y, direction) {
  context.beginPath();
  context.moveTo(right, y);
  context.lineTo(right - 7, y);
  context.lineTo(right - 7, y + direction * 5);
  context.stroke();
}
