// Creates elements. Names come from untrusted input, so they are only ever inserted as text.

/** Creates an element with attributes and children. An attribute that begins with "on" is a listener; one that is
 * false or null is left out. A child is an element or a text. */
export function element(tag, attributes = {}, ...children) {
  // Name the namespace explicitly: in an SVG document, createElement() would not create HTML elements.
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

/** Returns a function that schedules a call of `draw` for the next animation frame. However often it is called,
 * `draw` runs once per frame. `draw` also runs before the page is printed, because printing doesn't wait for a
 * frame. `page.painted` counts the calls. */
export function drawingOf(page, draw) {
  let asked = false;
  const ask = () => {
    // Several requests before the next frame lead to one call of `draw`.
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
      page.painted++;
    });
  };
  // Before printing there is no further frame, so draw at once.
  addEventListener("beforeprint", () => draw());
  addEventListener("afterprint", ask);
  return ask;
}

/** Makes an element that scrolls as a whole focusable, so that the keyboard can scroll it. */
export function scrollsByKeyboard(root) {
  root.tabIndex = 0;
  root.dataset.home = "";
}

/** Calls `changed(width, height)` now and whenever the size of an element changes. */
export function onResize(of, changed) {
  new ResizeObserver(() => changed(of.clientWidth, of.clientHeight)).observe(of);
}

/** Resizes a canvas to the given size in CSS pixels, at the screen's resolution. Returns its context, cleared. */
export function sharpened(canvas, width, height) {
  // The canvas has as many pixels as the screen has for it, so that it is sharp. Drawing uses CSS pixels.
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

/** The value of a CSS variable, such as `--code-k`. Cached until the theme changes. */
export function styleColor(variable) {
  colors ??= new Map();
  if (!colors.has(variable)) {
    colors.set(variable, getComputedStyle(document.documentElement).getPropertyValue(variable).trim());
  }
  return colors.get(variable);
}

/** Clears the cache of CSS variables. */
export function forgetColors() {
  colors = null;
}
