// Draws the boxes of a flame graph, and what is pointed at over them.

import { sharpened, styleColor } from "./dom.js";
import { LANE } from "./flame_layout.js";
import { LabelFitter } from "./labels.js";
import { currentShades, inkOn } from "./shades.js";

/** From row to row, and the size of letters, in pixels, as in the flame graphs of the command line; the end of names that
 * is cut. `below`: what is kept free below the boxes. */
export const FLAME_LOOK = { row: 16, font: 12, family: "Verdana, 'DejaVu Sans', sans-serif", cutsStart: false, below: 0 };

/** Left and right of the boxes. */
export const MARGIN = 8;

const FITTERS = new WeakMap();

/** The fitter of a view's letters. */
function fitterOf({ look }, pen) {
  if (!FITTERS.has(look)) FITTERS.set(look, new LabelFitter((text) => pen.measureText(text).width, look.cutsStart));
  return FITTERS.get(look);
}

/** Draws all boxes of a view that are in its window. */
export function paintBoxes(view) {
  const { boxes, picture, look } = view;
  const pen = sharpened(view.canvas, view.outerWidth, view.height);
  pen.font = `${look.font}px ${look.family}`;
  pen.textBaseline = "middle";
  const found = styleColor("--found");
  const brush = {
    pen,
    shades: currentShades(),
    fitter: fitterOf(view, pen),
    found,
    inkOnFound: inkOn(found),
    ink: styleColor("--ink"),
    fill: "",
    column: -1,
    view,
  };
  for (let row = 0; row < boxes.rows; row++) {
    const top = view.topOf(row);
    if (top + look.row < 0 || top > view.height) continue;
    brush.column = -1;
    for (let box = boxes.first[row]; box < boxes.first[row + 1]; box++) paintBox(brush, picture, box, top);
  }
}

function paintBox(brush, picture, box, top) {
  const { pen, view } = brush,
    { boxes, scale } = view;
  const node = boxes.node[box],
    start = boxes.start[box],
    end = boxes.end[box],
    from = view.view.start,
    to = view.view.end;
  const left = view.leftOf(Math.max(start, from)),
    right = view.leftOf(Math.min(end, to));
  if (right - left < 1) return paintNarrow(brush, picture, node, Math.floor(left), top);
  const width = right - left,
    shown = width > 2 ? width - 1 : width,
    height = view.look.row - 1;
  const color = picture.colorOf(node, brush.shades),
    isFound = picture.isFound(node);
  const isOutside = node > LANE && ((end - to) * scale > 0.5 || (from - start) * scale > 0.5);
  if (color) {
    if (isOutside) pen.globalAlpha = 0.5;
    setFill(brush, isFound ? brush.found : color.fill);
    pen.fillRect(left, top, shown, height);
    if (width > 8) paintShares(brush, picture, node, left, shown, top + height - 3);
    if (width > 3 && picture.isSelected(node)) outline(pen, brush.ink, 1, left, top, shown, height);
    if (isOutside) pen.globalAlpha = 1;
  }
  if (width <= view.look.font * 1.6) return;
  const text = brush.fitter.fit(picture.nameOf(node), shown - 5, picture.isJit(node));
  if (!text) return;
  setFill(brush, isFound ? brush.inkOnFound : color && !isOutside ? color.ink : brush.ink);
  pen.fillText(text, left + 3, top + height / 2 + 0.5);
}

/** A box narrower than a pixel fills one, if the box before does not: of thousands in a row only some can be seen. A
 * found box is always visible. */
function paintNarrow(brush, picture, node, column, top) {
  const isFound = picture.isFound(node);
  if (column === brush.column && !isFound) return;
  brush.column = column;
  const color = picture.colorOf(node, brush.shades);
  if (!color) return;
  setFill(brush, isFound ? brush.found : color.fill);
  brush.pen.fillRect(column, top, 1, brush.view.look.row - 1);
}

/** Colors are texts that the canvas parses: only new ones are configured to it. */
function setFill(brush, color) {
  if (brush.fill !== color) brush.pen.fillStyle = brush.fill = color;
}

function paintShares(brush, picture, node, left, width, top) {
  const { pen, shades } = brush,
    shares = picture.sharesOf(node);
  if (shares.length === 0) return;
  const all = shares.reduce((sum, [, weight]) => sum + weight, 0);
  let at = left;
  for (const [letter, weight] of shares) {
    setFill(brush, shades.of(letter, 0).fill);
    pen.fillRect(at, top, (width * weight) / all, 3);
    at += (width * weight) / all;
  }
}

function outline(pen, color, width, left, top, boxWidth, boxHeight) {
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.strokeRect(left + width / 2, top + width / 2, Math.max(boxWidth - width, 0.5), boxHeight - width);
}

/** Makes everything paler but a box, its callers and what is below it. `isFocused`: keys point at it. */
export function paintVeil(view, box, isFocused) {
  const { boxes } = view;
  const pen = sharpened(view.veil, view.outerWidth, view.height);
  if (box < 0 || boxes.node[box] <= LANE) return;
  const row = boxes.rowOf(box),
    place = (boxes.start[box] + boxes.end[box]) / 2;
  pen.globalAlpha = 0.38;
  pen.fillStyle = styleColor("--paper");
  pen.fillRect(0, 0, view.outerWidth, view.height);
  pen.globalAlpha = 1;
  for (let above = row; above >= 0; above--) {
    const caller = above === row ? box : boxes.at(above, place, 0);
    if (caller < 0 || boxes.node[caller] <= LANE) break;
    clearBox(pen, view, caller, above, above + 1);
  }
  clearBox(pen, view, box, row, lastRowBelow(boxes, row));
  const [left, width] = edgesOf(view, box);
  outline(
    pen,
    styleColor(isFocused ? "--accent" : "--ink"),
    isFocused ? 2.5 : 1.5,
    left,
    view.topOf(row),
    width,
    view.look.row - 1,
  );
}

/** Behind the last row that may hold what a box called: the lane of the next thread is not below it. */
function lastRowBelow(boxes, row) {
  let last = row + 1;
  while (last < boxes.rows && !(boxes.node[boxes.first[last]] <= LANE)) last++;
  return last;
}

function edgesOf(view, box) {
  const { boxes } = view;
  const left = view.leftOf(Math.max(boxes.start[box], view.view.start)),
    right = view.leftOf(Math.min(boxes.end[box], view.view.end));
  return [left, Math.max(right - left, 1)];
}

function clearBox(pen, view, box, fromRow, toRow) {
  const [left, width] = edgesOf(view, box);
  const [one, other] = [view.topOf(fromRow), view.topOf(toRow - 1)];
  pen.clearRect(left, Math.min(one, other), width, Math.abs(other - one) + view.look.row);
}
