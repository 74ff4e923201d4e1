// Shortens names to fit their boxes. Namespaces and packages before the function's own name are left out first, then
// the end is cut. With `cutsStart`, the start is cut instead. The command line's flame graphs do the same.

/** A name shortened to fewer letters would tell nothing. */
const FEWEST_LETTERS = 3;

/** No box has room for more letters, and a name may be a megabyte long. */
const MOST_LETTERS = 1000;

/** The offsets in a name at which the function's own name may start: after each `::` (and after each `.` between
 * names, if `dotsQualify`) outside of brackets. The name ends at the first space outside of brackets. */
export function qualifiedAt(name, dotsQualify) {
  const offsets = [];
  // The number of open brackets.
  let depth = 0;
  for (let at = 0; at + 1 < name.length; at++) {
    const letter = name[at];
    if ("<([{".includes(letter)) depth++;
    else if (">)]}".includes(letter)) depth = Math.max(0, depth - 1);
    else if (depth > 0) continue;
    else if (letter === " ") break;
    else if (letter === ":" && at > 0 && name[at - 1] === ":") offsets.push(at + 1);
    else if (letter === "." && dotsQualify && at > 0 && name[at - 1] !== "." && name[at + 1] !== ".")
      offsets.push(at + 1);
  }
  return offsets;
}

/** Shortens names to fit their boxes. `measure(text)` returns the width of a text. Widths are computed as sums of
 * letter widths, each measured once, because measuring every name on the canvas would take longer than drawing it. */
export class LabelFitter {
  constructor(measure, cutsStart = false) {
    this.measure = measure;
    this.cutsStart = cutsStart;
    /** The widths of letters, and of texts. */
    this.letters = new Map();
    this.widths = new Map();
    this.ellipsis = measure("…");
  }

  /** The part of a name that fits into a box with this much room; empty if too little of the name would be left. With
   * `dotsQualify`, a dot ends a qualifier, as in `java.util.`. */
  fit(name, room, dotsQualify) {
    const short = name.length > MOST_LETTERS ? name.slice(0, MOST_LETTERS) + "…" : name;
    if (this.width(short) <= room) return short;
    if (this.cutsStart) return this.cutStart(short, room);
    // Leave out qualifiers one by one until the name fits. If even the function's own name is too long, cut its end.
    let shortest = short;
    for (const offset of qualifiedAt(short, dotsQualify)) {
      shortest = short.slice(offset);
      if (this.width(shortest) <= room) return shortest;
    }
    return this.cut(shortest, room);
  }

  /** The start of a text that fits, followed by "…". */
  cut(text, room) {
    let [width, end, letters] = [this.ellipsis, 0, 0];
    for (const letter of text) {
      width += this.letter(letter);
      if (width > room) break;
      end += letter.length;
      letters++;
    }
    return letters + 1 < FEWEST_LETTERS ? "" : text.slice(0, end) + "…";
  }

  /** The end of a text that fits, after "…". */
  cutStart(text, room) {
    let [width, kept] = [this.ellipsis, ""];
    for (const letter of [...text].reverse()) {
      width += this.letter(letter);
      if (width > room) break;
      kept = letter + kept;
    }
    return kept.length + 1 < FEWEST_LETTERS ? "" : "…" + kept;
  }

  /** The width of a text: the sum of its letters' widths. Cached, because names occur in many boxes. */
  width(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = 0;
      for (const letter of text) width += this.letter(letter);
      this.widths.set(text, width);
    }
    return width;
  }

  letter(letter) {
    let width = this.letters.get(letter);
    if (width === undefined) this.letters.set(letter, (width = this.measure(letter)));
    return width;
  }
}
