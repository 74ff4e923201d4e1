// Elements. Names are strangers' text: they only ever become text.

/**
 * An element with attributes and children. An attribute that begins with "on" is a listener, one that is false or null
 * is left out; a child is an element or a text.
 */
export function element(tag, attributes = {}, ...children) {
  // The namespace is named: in the document of an SVG file elements have none otherwise.
  const made = document.createElementNS("http://www.w3.org/1999/xhtml", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * Calls `draw` before the next picture, once, however often it is requested, and before the page is printed, which
 * waits for no picture; `page.painted` counts what was drawn.
 */
export function drawingOf(page, draw) {
  let asked = false;
  const ask = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
      page.painted++;
    });
  };
  addEventListener("beforeprint", () => draw());
  addEventListener("afterprint", ask);
  return ask;
}

/** A part that scrolls as a whole is where the keyboard goes. */
export function scrollsByKeyboard(root) {
  root.tabIndex = 0;
  root.dataset.home = "";
}

/** Calls `changed(width, height)` now and whenever the size of an element changes. */
export function onResize(of, changed) {
  new ResizeObserver(() => changed(of.clientWidth, of.clientHeight)).observe(of);
}

/** A canvas as sharp as the screen, of that size in pixels of the page: its context, cleared. */
export function sharpened(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    [canvas.width, canvas.height] = [wide, high];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

let colors = null;

/** The value of one of the style's variables, such as `--code-k`; dropped when the theme changes. */
export function styleColor(variable) {
  colors ??= new Map();
  if (!colors.has(variable)) {
    colors.set(variable, getComputedStyle(document.documentElement).getPropertyValue(variable).trim());
  }
  return colors.get(variable);
}

/** The remembered style is read again. */
export function forgetColors() {
  colors = null;
}
