// Machine code: the listings of the section `code`, whose columns are documented in src/commands/view/code.rs, and the
// cost of each instruction in the selected samples.

import { rowParts } from "./selection.js";

/** What an instruction does with the address that it refers to. */
export const TARGET_KINDS = ["jump", "call", "memory", "immediate"];

/** All listings of the page. Instructions are numbered across all listings; those of one listing are adjacent. */
export class Listings {
  #pack;
  #profile;
  #byFunction = new Map();
  #byName = new Map();

  /** Reads the columns of listings from the page's data. Instructions are read later, by `instructions`. */
  constructor(pack, profile) {
    this.#pack = pack;
    this.#profile = profile;
    /** {limit, syntax, codes, functions, base, events: [{precision, said, total, exact}]}. Of an event, `said` is a
     * sentence on how precisely its samples are attributed to instructions, and `exact` is true if its costs were
     * counted instead of sampled. */
    this.about = pack.json("code");
    const texts = (column) => pack.texts(`code/${column}`);
    const numbers = (column) => pack.numbers(`code/${column}`);
    this.name = texts("listing.name");
    this.module = texts("listing.module");
    this.category = numbers("listing.category");
    /** For each listing, which of the function's versions in this tier it is, and how many there are. */
    this.version = numbers("listing.version");
    this.versions = numbers("listing.versions");
    this.pid = numbers("listing.pid");
    this.size = numbers("listing.size");
    /** Why a listing has no instructions; "" if it has some. */
    this.missing = texts("listing.missing");
    /** For each listing, the number of its first instruction. A last entry is the number of all instructions. */
    this.first = prefixSums(numbers("listing.instructions"));
    this.#expanded = texts("expanded");
    this.#firstExpanded = prefixSums(numbers("listing.expanded"));
    this.#loaded = numbers("listing.loaded");
    this.#address = texts("listing.address");
    this.#index();
  }

  #expanded;
  #firstExpanded;
  #loaded;
  #address;

  /** For each instruction, its exactly counted cost, for an event that counts instructions instead of sampling. */
  costs(event) {
    return this.#pack.numbers(`code/cost.${event}`);
  }

  /** The number of listings. */
  get length() {
    return this.name.length;
  }

  /** The number of instructions in all listings. */
  get instructionCount() {
    return this.first[this.length];
  }

  #index() {
    for (let listing = 0; listing < this.length; listing++) {
      pushTo(this.#byFunction, this.#key(listing), listing);
      pushTo(this.#byName, this.name[listing], listing);
    }
  }

  /** The listings of a function, hottest first: all versions with the function's name and module, in any tier. */
  ofFunction(number) {
    return this.#byFunction.get(functionKey(this.#profile, number)) ?? [];
  }

  /** The listings of the function to which a listing belongs. */
  likes(listing) {
    return this.#byFunction.get(this.#key(listing));
  }

  #key(listing) {
    const isJit = this.#profile.categories[this.category[listing]].jit;
    return codeKey(this.name[listing], this.module[listing], isJit);
  }

  /** The listing with this name that contains an address. If none contains it, the hottest with this name; -1 if
   * there is none. */
  at(name, address) {
    const candidates = this.#byName.get(name) ?? [];
    const containsAddress = (listing) => {
      const start = this.address(listing);
      return start !== null && address >= start && address < start + BigInt(this.size[listing]);
    };
    return candidates.find(containsAddress) ?? candidates[0] ?? -1;
  }

  /** Inlined calls of a listing whose addresses are unknown, as the lines of a tree. */
  expanded(listing) {
    return this.#expanded.slice(this.#firstExpanded[listing], this.#firstExpanded[listing + 1]);
  }

  /** The address of a listing's first byte; null if its code isn't listed. */
  address(listing) {
    return this.#address[listing] ? BigInt(`0x${this.#address[listing]}`) : null;
  }

  /** When a listing's code was written, in nanoseconds since the first sample; null if unknown. */
  loadedAt(listing) {
    if (!this.#loaded[listing] || !this.#profile.time) return null;
    return this.#loaded[listing] - 1 - Number(this.#profile.time.start - BigInt(this.about.base));
  }

  /** The number of the function that a listing belongs to; -1 if no sampled stack contains that function. */
  functionOf(listing) {
    this.#functions ??= functionNumbers(this.#profile);
    const key = this.#key(listing);
    return this.#functions.get(`${key}\n${this.category[listing]}`) ?? this.#functions.get(key) ?? -1;
  }

  #functions = null;

  /** The instructions, which are decoded at the first call. @returns {Instructions} */
  instructions() {
    this.#instructions ??= new Instructions(this.#pack, this.first);
    return this.#instructions;
  }

  #instructions = null;

}

/** The instructions of all listings: texts, targets and source lines. */
export class Instructions {
  #text;
  #texts;
  #lens;
  #first;
  #outFunction;
  #outOffset;
  #outAddress;
  #files;

  /** `first` has the number of each listing's first instruction, and at the end the number of all instructions. */
  constructor(pack, first) {
    const numbers = (column) => pack.numbers(`code/${column}`);
    this.#first = first;
    // Equal instructions share their text: `text` has the index of each instruction's text in `texts`.
    this.#text = numbers("text");
    this.#texts = pack.texts("code/texts");
    this.#lens = numbers("texts.len");
    /** For each instruction, its offset from the start of its listing, in bytes. */
    this.offset = new Uint32Array(this.#text.length);
    for (let listing = 0; listing + 1 < first.length; listing++) {
      for (let instruction = first[listing], offset = 0; instruction < first[listing + 1]; instruction++) {
        this.offset[instruction] = offset;
        offset += this.#lens[this.#text[instruction]];
      }
    }
    this.#targets(numbers);
    this.#outFunction = pack.texts("code/out.function");
    this.#outOffset = numbers("out.offset");
    this.#outAddress = pack.texts("code/out.address");
    this.#sources(numbers, pack);
  }

  /** Reads the targets of instructions. Only instructions with a target are stored: `target.gap` is the distance from
   * the previous one. */
  #targets(numbers) {
    const [gaps, kinds, tos] = ["target.gap", "target.kind", "target.to"].map(numbers);
    /** For each instruction: 0 without a target, otherwise 1 + the kind of target (an index of TARGET_KINDS). */
    this.targetKind = new Uint8Array(this.#text.length);
    /** For each instruction, the instruction in the same listing that is its target; -1 if its target is elsewhere or
     * it has none. */
    this.inside = new Int32Array(this.#text.length).fill(-1);
    this.#out = new Int32Array(this.#text.length).fill(-1);
    for (let target = 0, instruction = 0; target < gaps.length; target++) {
      instruction += gaps[target];
      this.targetKind[instruction] = kinds[target] + 1;
      const half = Math.floor(tos[target] / 2);
      // An odd number stands for a target outside the listing, an even one for the distance to an instruction of the
      // listing, which may be negative (zigzag encoding).
      if (tos[target] % 2) this.#out[instruction] = half;
      else this.inside[instruction] = instruction + (half % 2 ? -(half + 1) / 2 : half / 2);
    }
  }

  #out;

  /** Reads the source lines of instructions, which are stored once for a run of instructions with the same line.
   * `source.gap` is the distance from the start of the previous run. */
  #sources(numbers, pack) {
    const [gaps, files, lines] = ["source.gap", "source.file", "source.line"].map(numbers);
    this.#files = pack.texts("code/files");
    /** For each instruction: 0 if its source line is unknown, otherwise 1 + the number of its file. */
    this.file = new Uint32Array(this.#text.length);
    this.line = new Uint32Array(this.#text.length);
    for (let run = 0, instruction = 0; run < gaps.length; run++) {
      instruction += gaps[run];
      const end = run + 1 < gaps.length ? instruction + gaps[run + 1] : this.#text.length;
      this.file.fill(files[run], instruction, end);
      this.line.fill(lines[run], instruction, end);
    }
    this.hasSource = files.some((file) => file > 0);
    const [lineFiles, lineNumbers] = ["line.file", "line.number"].map(numbers);
    this.#lineTexts = new Map();
    pack.texts("code/line.text").forEach((text, line) => {
      this.#lineTexts.set(lineKey(lineFiles[line], lineNumbers[line]), text);
    });
    this.#filesWithText = new Set(lineFiles);
  }

  #lineTexts;
  #filesWithText;

  /** The text of an instruction, without the target address of a branch. */
  text(at) {
    return this.#texts[this.#text[at]];
  }

  /** The length of an instruction in bytes. */
  len(at) {
    return this.#lens[this.#text[at]];
  }

  /** The target of an instruction if it is outside the listing: {kind, name, offset, address}; otherwise null. `name`
   * is that of the function there, and `offset` the target's offset in it. `address` is null if unknown. */
  out(instruction) {
    const number = this.#out[instruction];
    if (number < 0) return null;
    const address = this.#outAddress[number];
    return {
      kind: TARGET_KINDS[this.targetKind[instruction] - 1],
      name: this.#outFunction[number],
      offset: this.#outOffset[number],
      address: address ? BigInt(`0x${address}`) : null,
    };
  }

  /** The name of the file with this number. */
  fileName(number) {
    return this.#files[number];
  }

  /** The text of a source line; undefined if the file was not available. */
  lineText(file, line) {
    return this.#lineTexts.get(lineKey(file, line));
  }

  /** True if the page contains lines of this file. */
  hasText(file) {
    return this.#filesWithText.has(file);
  }

  /** The listing that contains an instruction. */
  listingOf(instruction) {
    // A binary search for the last listing that starts at or before the instruction.
    let [low, high] = [0, this.#first.length - 1];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.#first[middle] <= instruction) low = middle;
      else high = middle;
    }
    return low;
  }
}

function lineKey(file, line) {
  return file * 0x2000000 + line;
}

function prefixSums(counts) {
  const sums = new Uint32Array(counts.length + 1);
  for (let at = 0; at < counts.length; at++) sums[at + 1] = sums[at] + counts[at];
  return sums;
}

function pushTo(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

/** The key that a function shares with its listings: the name and, for code from a file, the file name of the module.
 * Directories don't count, because in a comparison a program may have moved. */
function codeKey(name, module, isJit) {
  return `${name}\n${isJit ? "" : module.slice(module.lastIndexOf("/") + 1)}`;
}

function functionKey({ functions, categories }, number) {
  return codeKey(functions.name[number], functions.module[number], categories[functions.category[number]].jit);
}

/** The numbers of functions, by name, module and category, and also by name and module alone. */
function functionNumbers(profile) {
  const numbers = new Map();
  // Go backward, so that of several functions with the same key the first one stays.
  for (let number = profile.functionCount - 1; number >= 0; number--) {
    const key = functionKey(profile, number);
    numbers.set(key, number);
    numbers.set(`${key}\n${profile.functions.category[number]}`, number);
  }
  return numbers;
}

/**
 * The cost of the selected samples at each instruction, for each event.
 * @returns {{weight: Float64Array, count: Float64Array, total: number, totalCount: number, listed: number}[]} weight,
 *   count: by instruction; total, totalCount: weight and number of all selected samples; listed: how many of these are
 *   at an instruction of a listing
 */
export function instructionCosts(profile, listings, state) {
  return profile.events.map((_, event) => {
    if (listings.about.events[event]?.exact) return exactCosts(listings, event);
    const rows = profile.rows(event);
    const instructions = rows.instruction;
    // `partOf` returns 0 for rows that aren't selected.
    const partOf = rowParts(profile, rows, state);
    const [weight, count] = [0, 0].map(() => new Float64Array(listings.instructionCount));
    const cost = { weight, count, total: 0, totalCount: 0, listed: 0 };
    for (let row = 0; row < rows.length; row++) {
      if (partOf(row) === 0) continue;
      cost.total += rows.weight[row];
      cost.totalCount += rows.count[row];
      // 0 means that the sample's instruction isn't in a listing.
      if (!instructions[row]) continue;
      weight[instructions[row] - 1] += rows.weight[row];
      count[instructions[row] - 1] += rows.count[row];
      cost.listed += rows.count[row];
    }
    return cost;
  });
}

/** The exact counts of each instruction. They are for the whole run, whatever time and threads are selected. */
function exactCosts(listings, event) {
  const weight = Float64Array.from(listings.costs(event)), total = listings.about.events[event].total;
  return { weight, count: weight, total, totalCount: total, listed: sumOf(weight, 0, weight.length) };
}

/** The sum of a column from index `from` up to, but not including, `to`. */
export function sumOf(column, from, to) {
  let sum = 0;
  for (let at = from; at < to; at++) sum += column[at];
  return sum;
}
