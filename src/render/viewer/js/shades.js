// The colors of boxes for drawing on a canvas. The style sheet defines a color for each kind of code, by letter, for
// light and dark pages. Functions of the same kind get one of three shades, depending on their names, as in the command
// line's flame graphs.

import { element, styleColor } from "./dom.js";

const SHADES = 3;

/** A hash of a name (FNV-1a of its UTF-8), which selects the name's shade. It is the same in every picture. */
export function hashOfName(name) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** The letter of the warm color for a name, for profiles without kinds of code. */
export function warmLetter(hash) {
  return "ABCD"[Math.floor(hash / SHADES) % 4];
}

/** The letter for the color of a function: that of its category or, if the profile doesn't know any kinds of code,
 * that of its name. */
export function letterOf({ knowsCategories, categories }, category, name) {
  return knowsCategories ? categories[category].letter : warmLetter(hashOfName(name));
}

/** A square in the color of a letter; hatched for code without a name. */
export function colorSquare(letter) {
  return element("i", { class: "color", style: `background:var(--fill-${letter},var(--code-${letter}))` });
}

const DARK_INK = "#16181a";
const LIGHT_INK = "#fff";

function isLightColor(parts) {
  return luminance(parts) > 0.196;
}

/** Black or white, whichever is readable on this color. */
export function inkOn(hex) {
  return isLightColor(partsOf(hex)) ? DARK_INK : LIGHT_INK;
}

/** The colors of one theme. */
class Shades {
  constructor(theme) {
    this.theme = theme;
    this.known = new Map();
  }

  /** The color of a letter in the shade that a hash selects, and the color of text on it: {fill, ink}. */
  of(letter, hash) {
    let shades = this.known.get(letter);
    if (!shades)
      this.known.set(letter, (shades = Array.from({ length: SHADES }, (_, shade) => this.shaded(letter, shade))));
    return shades[hash % SHADES];
  }

  /** The color of a letter in a shade, and the color of text on it: {fill, ink}. Shade 0 is the color itself, 1 is
   * lighter and 2 darker. */
  shaded(letter, shade) {
    const base = partsOf(styleColor("--code-" + letter) || "#888888");
    // Mix a little white or black into the color.
    const towards = shade === 1 ? 255 : 0,
      share = [0, 0.1, 0.06][shade];
    const parts = mixed(base, towards, share), isLight = isLightColor(parts);
    // The lines of hatching contrast with the text even more than the fill color does.
    const isHatched = styleColor("--line-" + letter) !== "", line = mixed(parts, isLight ? 255 : 0, 0.4);
    return { fill: isHatched ? hatched(textOf(parts), textOf(line)) : textOf(parts), ink: isLight ? DARK_INK : LIGHT_INK };
  }
}

let currentTheme = null;

/** The colors of the current theme. */
export function currentShades() {
  const theme = styleColor("--paper");
  if (currentTheme?.theme !== theme) currentTheme = new Shades(theme);
  return currentTheme;
}

/** A hatched canvas pattern, for code without a name. */
function hatched(fill, line) {
  const tile = element("canvas"), size = 8;
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.fillStyle = fill;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = line;
  pen.lineWidth = 2;
  pen.beginPath();
  // Draw the line in the neighboring tiles, too, so that it continues across their edges.
  for (const at of [-size, 0, size]) {
    pen.moveTo(at - 1, size + 1);
    pen.lineTo(at + size + 1, -1);
  }
  pen.stroke();
  return pen.createPattern(tile, "repeat");
}

function mixed(parts, towards, part) {
  return parts.map((one) => Math.round(one + (towards - one) * part));
}

function textOf(parts) {
  return `rgb(${parts.join(",")})`;
}

function partsOf(hex) {
  if (hex.length === 4) return [1, 2, 3].map((at) => 17 * parseInt(hex[at], 16));
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The relative luminance as defined by WCAG, from 0 to 1. */
function luminance(parts) {
  const [red, green, blue] = parts
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
