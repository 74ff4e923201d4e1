// Unpacks the page's data: sections of JSON and columns. See src/render/viewer/pack.rs for the format.

/** The sections and columns of the page. Columns are decoded when asked for. */
export class Pack {
  #sections;
  #columns = new Map();

  /** @param {Uint8Array} block the decompressed data */
  constructor(block) {
    const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length)));
    this.#sections = head.sections;
    let offset = 4 + length;
    for (const { name, kind, length: count, bytes } of head.columns) {
      this.#columns.set(name, { kind, count, bytes: block.subarray(offset, offset + bytes) });
      offset += bytes;
    }
  }

  /** The JSON of a section; null if there is no such section. */
  json(section) {
    return this.#sections[section] ?? null;
  }

  /** True if there is a column of this name. */
  has(column) {
    return this.#columns.has(column);
  }

  /** A column of numbers; empty if there is no such column. Integers above 2^53 are rounded. */
  numbers(column) {
    const found = this.#columns.get(column);
    if (!found) return new Uint32Array(0);
    return found.kind === "deltas" ? decodeDeltas(found) : decodeNumbers(found);
  }

  /** A column of texts; empty if there is no such column. */
  texts(column) {
    const found = this.#columns.get(column);
    return found && found.count > 0 ? new TextDecoder().decode(found.bytes).split("\n") : [];
  }
}

/** Decodes the data in the page. */
export async function readPack() {
  const element = document.getElementById("data");
  const packed = fromBase64(element.textContent);
  // Free the memory of the packed data.
  element.textContent = "";
  const unpacked = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
  return new Pack(new Uint8Array(await unpacked.arrayBuffer()));
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** Decodes a column of numbers, into 32 bits each if all of them fit. */
function decodeNumbers({ bytes, count }) {
  const small = new Uint32Array(count);
  for (let offset = 0, index = 0; index < count; index++) {
    // Numbers are stored with seven bits per byte, lowest bits first. The highest bit of a byte means that more follow.
    // Multiply instead of shifting, because numbers may have more than 32 bits.
    let byte = bytes[offset++];
    let number = byte & 0x7f;
    for (let factor = 128; byte >= 0x80; factor *= 128) {
      byte = bytes[offset++];
      number += (byte & 0x7f) * factor;
    }
    if (number > 0xffffffff) return decodeLarge({ bytes, count }, small, index);
    small[index] = number;
  }
  return small;
}

/** Decodes a column with numbers above 2^32. The first one is at index `from`; `small` has the numbers before it. */
function decodeLarge({ bytes, count }, small, from) {
  const large = new Float64Array(count);
  large.set(small.subarray(0, from));
  // Skip the numbers that `small` has already: each ends with a byte below 0x80.
  let offset = 0;
  for (let skipped = 0; skipped < from; offset++) if (bytes[offset] < 0x80) skipped++;
  for (let index = from; index < count; index++) {
    let byte = bytes[offset++];
    let number = byte & 0x7f;
    for (let factor = 128; byte >= 0x80; factor *= 128) {
      byte = bytes[offset++];
      number += (byte & 0x7f) * factor;
    }
    large[index] = number;
  }
  return large;
}

/** Decodes a column in which each number is stored as the difference from the previous one. */
function decodeDeltas({ bytes, count }) {
  const numbers = new Float64Array(count);
  let value = 0;
  let largest = 0;
  for (let offset = 0, index = 0; index < count; index++) {
    let byte = bytes[offset++];
    let zigzag = byte & 0x7f;
    for (let factor = 128; byte >= 0x80; factor *= 128) {
      byte = bytes[offset++];
      zigzag += (byte & 0x7f) * factor;
    }
    // Zigzag encoding: 0, 1, 2, 3 … stand for the differences 0, −1, 1, −2 …
    const half = Math.floor(zigzag / 2);
    value += zigzag % 2 ? -half - 1 : half;
    numbers[index] = value;
    if (value > largest) largest = value;
  }
  return largest > 0xffffffff ? numbers : Uint32Array.from(numbers);
}
