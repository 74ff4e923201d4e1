// Stacked bars over time, with the selected ranges.

import { Brush } from "./brush.js";
import { element, sharpened, styleColor } from "./dom.js";
import { spanOfPixel } from "./time_axis.js";
import { timeTicks } from "./time_ticks.js";

/** The room for labels to the left of the bars, in pixels, if there are no lanes to align with. */
const BARS_LEFT = 78;
const BARS_BOTTOM = 18;
const BAR_WIDTH = 4;

/** A chart of bars. Dragging the mouse over it selects a range of time. */
export class TimeBars {
  #canvas;
  #legend;
  #read;
  #height;
  #shown = null;
  #brush = null;
  #page;
  #length;

  /**
   * @param {HTMLElement} root
   * @param {{id: string, label: string, height: number, page, length: number|null}} options length: the length of the
   *   recording in units; null if samples have no times, so that no range can be selected
   */
  constructor(root, { id, label, height, page, length }) {
    [this.#height, this.#page, this.#length] = [height, page, length];
    if (length !== null) this.#brush = new Brush(page, length, () => this.draw());
    this.#canvas = element("canvas", { id, class: "time-bars", role: "img", "aria-label": label });
    this.#legend = element("div", { class: "flame-legend", role: "group", tabindex: "0", "aria-label": "Legend" });
    this.#read = element("p", { class: "time-read", "aria-hidden": "true" });
    root.append(this.#legend, this.#canvas, this.#read);
    this.#brush?.attach(this.#surface());
    this.#canvas.addEventListener("pointermove", (event) => this.#tell(event));
    this.#canvas.addEventListener("pointerleave", () => (this.#read.textContent = ""));
  }

  /** The number of bars that fit. */
  get bins() {
    return Math.max(10, Math.floor(this.#place().width / BAR_WIDTH));
  }

  /** The position of the bars, in pixels from the left edge of the canvas. They are aligned with the lanes above. */
  #place() {
    const box = this.#canvas.parentElement.getBoundingClientRect(), lanes = this.#page.lanes;
    const left = lanes ? lanes.left - box.left : BARS_LEFT;
    return { left, width: Math.max(1, lanes?.width ?? box.width - left) };
  }

  /**
   * @param {object} shown {columns: Float64Array[] by series, series: {name, color: a CSS variable}[], axis: {from,
   *   to}, ranges, unit: nanoseconds per unit of the axis, said: (value) => text, time: (at) => text}
   */
  show(shown) {
    this.#shown = shown;
    this.#legend.replaceChildren(...shown.series.map(({ name, color }) =>
      element("span", {}, element("i", { class: "color", style: `background:var(${color})` }), name)));
    this.draw();
  }

  /** Draws the chart. */
  draw() {
    if (!this.#shown) return;
    const { columns, series, said } = this.#shown;
    const width = this.#canvas.parentElement.clientWidth;
    const context = sharpened(this.#canvas, width, this.#height);
    const bins = columns[0]?.length ?? 0;
    const plot = { ...this.#place(), top: 6, height: this.#height - BARS_BOTTOM - 6 };
    const sums = new Float64Array(bins);
    for (const column of columns) column.forEach((value, bin) => (sums[bin] += value));
    const highest = sums.reduce((most, sum) => Math.max(most, sum), 0);
    this.#drawRanges(context, plot);
    this.#drawAxes(context, plot, highest, said);
    // For each bar, the sum of the values that have been drawn already. The next one is stacked on top of them.
    const below = new Float64Array(bins);
    const barWidth = plot.width / Math.max(1, bins);
    columns.forEach((column, number) => {
      context.fillStyle = styleColor(series[number].color);
      for (let bin = 0; bin < bins; bin++) {
        if (column[bin] <= 0) continue;
        const [low, high] = [below[bin], below[bin] + column[bin]].map((sum) => (plot.height * sum) / highest);
        // Even a tiny amount gets one pixel.
        const height = Math.max(high - low, below[bin] === 0 ? 1 : 0);
        // Wide bars have a gap between them.
        const gap = barWidth > 3 ? 1 : 0;
        context.fillRect(plot.left + bin * barWidth, plot.top + plot.height - low - height, Math.max(1, barWidth - gap), height);
        below[bin] += column[bin];
      }
    });
  }

  /** Draws the selected ranges as boxes behind the bars. */
  #drawRanges(context, plot) {
    const chosen = this.#brush?.ranges() ?? [];
    if (chosen.length === 0) return;
    context.fillStyle = styleColor("--raised");
    for (const [from, to] of chosen) {
      const [left, right] = [from, to].map((time) => this.#x(time, plot));
      context.fillRect(left, plot.top, Math.max(1, right - left), plot.height);
      context.strokeStyle = styleColor("--accent");
      context.strokeRect(left + 0.5, plot.top + 0.5, Math.max(1, right - left) - 1, plot.height - 1);
    }
  }

  /** Draws the axes. On the left are 0 and the value of the highest bar (`most`), as the text that `said` makes of it;
   * below the bars are times. */
  #drawAxes(context, plot, most, said) {
    const { axis, unit } = this.#shown;
    context.fillStyle = styleColor("--faint");
    context.strokeStyle = styleColor("--line");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "top";
    context.fillText(said(most), plot.left - 6, plot.top - 2);
    context.textBaseline = "bottom";
    context.fillText("0", plot.left - 6, plot.top + plot.height + 2);
    context.beginPath();
    context.moveTo(plot.left - 0.5, plot.top);
    context.lineTo(plot.left - 0.5, plot.top + plot.height + 0.5);
    context.lineTo(plot.left + plot.width, plot.top + plot.height + 0.5);
    context.stroke();
    context.textBaseline = "top";
    context.textAlign = "left";
    for (const { at, text } of timeTicks(axis.from, axis.to, plot.width, unit)) {
      const x = this.#x(at, plot);
      context.fillRect(Math.round(x), plot.top + plot.height, 1, 4);
      if (x + context.measureText(text).width + 3 < plot.left + plot.width) context.fillText(text, x + 3, plot.top + plot.height + 4);
    }
  }

  #x(at, plot) {
    const { from, to } = this.#shown.axis;
    const part = (at - from) / Math.max(1, to - from);
    return plot.left + plot.width * Math.max(0, Math.min(1, part));
  }

  /** The time at a position in pixels from the left, in units of the axis. */
  #at(x) {
    const { left, width } = this.#place(), { from, to } = this.#shown.axis;
    return from + (to - from) * Math.max(0, Math.min(1, (x - left) / width));
  }

  /** The surface for the brush (see brush.js): the range of one pixel, and the edges of the selected ranges. */
  #surface() {
    const element = this.#canvas;
    return {
      element,
      isClickChoosing: false,
      spanAt: (x, _y, isDragging = false) => {
        const { left, width } = this.#place();
        if (!this.#shown || ((x < left || x > left + width) && !isDragging)) return null;
        const { from, to } = this.#shown.axis;
        return spanOfPixel(this.#at(x), (to - from) / width, this.#length);
      },
      edgeAt: (x) => {
        if (!this.#shown) return null;
        const { axis, ranges } = this.#shown, { left, width } = this.#place();
        const pixels = width / Math.max(1, axis.to - axis.from);
        // True if a time is within 4 pixels of the point.
        const isNear = (time) => Math.abs(left + (time - axis.from) * pixels - x) < 4;
        for (const [index, [from, to]] of ranges.entries()) {
          if (isNear(to)) return { index, edge: "to" };
          if (isNear(from)) return { index, edge: "from" };
        }
        return null;
      },
    };
  }

  /** Shows the values of the bar under the mouse. */
  #tell(event) {
    if (!this.#shown) return;
    const { columns, series, axis, said, time } = this.#shown;
    const bins = columns[0]?.length ?? 0;
    const pointed = this.#at(event.offsetX);
    const bin = Math.min(bins - 1, Math.floor(((pointed - axis.from) / Math.max(1, axis.to - axis.from)) * bins));
    // The time at which a bar begins, as text.
    const edge = (bin) => time(axis.from + ((axis.to - axis.from) * bin) / bins);
    const parts = series.map(({ name }, number) => [name, columns[number][bin]]).filter(([, value]) => value > 0);
    const words = parts.map(([name, value]) => `${name} ${said(value)}`);
    this.#read.textContent = `${edge(bin)} – ${edge(bin + 1)}: ${words.join(", ") || "nothing"}`;
  }
}
