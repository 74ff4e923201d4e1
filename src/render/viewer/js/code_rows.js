// Which lines of a listing are shown: all of them, or those with samples and a few around them. No drawing here.

/** How many instructions are shown before and after an instruction with samples. */
export const CONTEXT = 3;

/**
 * The visible rows of a listing.
 * @param {number} from the first instruction
 * @param {number} to one past the last instruction
 * @param {(at: number) => boolean} wanted which instructions must be shown; null for all
 * @returns {{rows: Int32Array, rowOf: Map<number, number>}} rows: an instruction's index, or -1 - n for a gap of n
 *   instructions; rowOf: the row of each instruction
 */
export function listingRows(from, to, wanted, context = CONTEXT) {
  const rows = [];
  const rowOf = new Map();
  // The first instruction that has no row yet.
  let next = from;
  const show = (instruction) => {
    rowOf.set(instruction, rows.length);
    rows.push(instruction);
    next = instruction + 1;
  };
  for (let instruction = from; instruction < to; instruction++) {
    // Show this instruction, and before it the context that isn't shown yet. A gap row stands for what is left out.
    if (wanted && !wanted(instruction)) continue;
    const start = wanted ? Math.max(next, instruction - context) : next;
    // A gap of n instructions is the row −1 − n.
    if (start > next) rows.push(next - start - 1);
    for (let shown = start; shown <= instruction; shown++) show(shown);
    if (!wanted) continue;
    // Show the context after this instruction, up to the next wanted one, which brings its own.
    const end = Math.min(to, instruction + context + 1);
    for (let shown = next; shown < end; shown++) {
      if (wanted(shown)) break;
      show(shown);
    }
  }
  if (next < to) rows.push(next - to - 1);
  return { rows: Int32Array.from(rows), rowOf };
}

/**
 * The source lines of the instructions from `from` up to, but not including, `to`. Files are in the order in which the
 * instructions mention them.
 * @returns {{file: number, line: number, weight: number[], count: number[]}[]} weight, count: sums for each event
 */
export function sourceLines(instructions, from, to, costs) {
  const lines = new Map();
  // The position of each file in the order in which the instructions mention them.
  const files = new Map();
  for (let instruction = from; instruction < to; instruction++) {
    const file = instructions.file[instruction];
    if (!file) continue;
    if (!files.has(file)) files.set(file, files.size);
    const key = `${file}:${instructions.line[instruction]}`;
    let line = lines.get(key);
    if (!line) {
      line = { file, line: instructions.line[instruction], weight: costs.map(() => 0), count: costs.map(() => 0) };
      lines.set(key, line);
    }
    costs.forEach((cost, event) => {
      line.weight[event] += cost.weight[instruction];
      line.count[event] += cost.count[instruction];
    });
  }
  return [...lines.values()].sort((a, b) => files.get(a.file) - files.get(b.file) || a.line - b.line);
}

/** If at most this many lines without instructions are between two visible source lines, they are shown as well, as far
 * as the page has their text. */
const BETWEEN = 6;

/**
 * The rows of the source pane: {file} heads a file's lines, {file, line, sums} is a line (sums is null if no
 * instruction belongs to it), and {gap} stands for lines left out.
 */
export function sourceRows(lines, instructions, hotOnly) {
  const rows = [];
  const isHot = (line) => line.count.some((count) => count > 0);
  const isNearHot = (line, index) => {
    const neighbors = [lines[index - 1], line, lines[index + 1]];
    return neighbors.some((neighbor) => neighbor && isHot(neighbor) && neighbor.file === line.file);
  };
  // With `hotOnly`, show only lines with samples and their neighbors in the same file.
  const shown = hotOnly ? lines.filter(isNearHot) : lines;
  let before = null;
  for (const line of shown) {
    if (before?.file !== line.file) rows.push({ file: line.file });
    else {
      // If only a few lines are between this line and the previous one, show them, too. Otherwise, show a gap.
      const between = line.line - before.line - 1;
      if (between > 0 && between <= BETWEEN && instructions.hasText(line.file)) {
        for (let number = before.line + 1; number < line.line; number++) {
          rows.push({ file: line.file, line: number, sums: lineOf(lines, line.file, number) });
        }
      } else if (between > 0) rows.push({ gap: between });
    }
    rows.push({ file: line.file, line: line.line, sums: line });
    before = line;
  }
  return rows;
}

/** The sums of a line that has instructions; null if it has none. */
function lineOf(lines, file, number) {
  return lines.find((line) => line.file === file && line.line === number) ?? null;
}
