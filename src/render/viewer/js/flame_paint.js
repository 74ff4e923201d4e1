// Draws the boxes of a flame graph, and highlights the box under the pointer or cursor.

import { sharpened, styleColor } from "./dom.js";
import { LANE } from "./flame_layout.js";
import { LabelFitter } from "./labels.js";
import { currentShades, inkOn } from "./shades.js";

/** Dimensions and font of a graph, in pixels, as in the command line's flame graphs. `row`: height of a row;
 * `cutsStart`: whether long names are cut at the start instead of the end; `below`: free space below the boxes. */
export const FLAME_LOOK = { row: 16, font: 12, family: "Verdana, 'DejaVu Sans', sans-serif", cutsStart: false, below: 0 };

/** The space on the left and right of the boxes, in pixels. */
export const MARGIN = 8;

const FITTERS = new WeakMap();

/** The label fitter for a view's font. */
function fitterOf({ look }, pen) {
  if (!FITTERS.has(look)) FITTERS.set(look, new LabelFitter((text) => pen.measureText(text).width, look.cutsStart));
  return FITTERS.get(look);
}

/** Draws all boxes of a view that are visible in its window. */
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

/** Paints one box with its name. `top` is the upper edge of its row, in pixels. */
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
  // `left` and `right` are the edges of the box's visible part, in pixels.
  if (right - left < 1) return paintNarrow(brush, picture, node, Math.floor(left), top);
  // Boxes have gaps of one pixel between them, unless they are very narrow.
  const width = right - left,
    shown = width > 2 ? width - 1 : width,
    height = view.look.row - 1;
  const color = picture.colorOf(node, brush.shades),
    isFound = picture.isFound(node);
  // True if the box continues outside of the view, as callers do after zooming in. Such boxes are painted pale.
  const isOutside = node > LANE && ((end - to) * scale > 0.5 || (from - start) * scale > 0.5);
  if (color) {
    if (isOutside) pen.globalAlpha = 0.5;
    setFill(brush, isFound ? brush.found : color.fill);
    pen.fillRect(left, top, shown, height);
    if (width > 8) paintShares(brush, picture, node, left, shown, top + height - 3);
    if (width > 3 && picture.isSelected(node)) outline(pen, brush.ink, 1, left, top, shown, height);
    if (isOutside) pen.globalAlpha = 1;
  }
  // Too narrow for a few letters.
  if (width <= view.look.font * 1.6) return;
  const text = brush.fitter.fit(picture.nameOf(node), shown - 5, picture.isJit(node));
  if (!text) return;
  setFill(brush, isFound ? brush.inkOnFound : color && !isOutside ? color.ink : brush.ink);
  pen.fillText(text, left + 3, top + height / 2 + 0.5);
}

/** Draws a box that is narrower than a pixel. It fills a pixel column, unless the box before it in the same row did.
 * A box that matches the search is always drawn. */
function paintNarrow(brush, picture, node, column, top) {
  const isFound = picture.isFound(node);
  if (column === brush.column && !isFound) return;
  brush.column = column;
  const color = picture.colorOf(node, brush.shades);
  if (!color) return;
  setFill(brush, isFound ? brush.found : color.fill);
  brush.pen.fillRect(column, top, 1, brush.view.look.row - 1);
}

/** Sets the fill color. Setting it on the canvas is slow, because the canvas parses the color, so this is skipped if
 * the color is the same. */
function setFill(brush, color) {
  if (brush.fill !== color) brush.pen.fillStyle = brush.fill = color;
}

/** Paints stripes along the lower edge of a box that ran as several tiers: each is as wide as the tier's share. */
function paintShares(brush, picture, node, left, width, top) {
  const { pen, shades } = brush,
    shares = picture.sharesOf(node);
  if (shares.length === 0) return;
  const total = shares.reduce((sum, [, weight]) => sum + weight, 0);
  let stripeLeft = left;
  for (const [letter, weight] of shares) {
    const stripeWidth = (width * weight) / total;
    setFill(brush, shades.of(letter, 0).fill);
    pen.fillRect(stripeLeft, top, stripeWidth, 3);
    stripeLeft += stripeWidth;
  }
}

function outline(pen, color, width, left, top, boxWidth, boxHeight) {
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.strokeRect(left + width / 2, top + width / 2, Math.max(boxWidth - width, 0.5), boxHeight - width);
}

/** Dims everything except for a box, its callers and its callees. `isFocused`: the box is at the keyboard cursor. */
export function paintVeil(view, box, isFocused) {
  const { boxes } = view;
  const pen = sharpened(view.veil, view.outerWidth, view.height);
  if (box < 0 || boxes.node[box] <= LANE) return;
  const row = boxes.rowOf(box),
    place = (boxes.start[box] + boxes.end[box]) / 2;
  // Cover everything with a pale veil, then cut out the callers of the box, and the box with its callees.
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

/** The row after the last one that may contain callees of a box in this row: the row with the name of the next thread,
 * or the end of the graph. */
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
