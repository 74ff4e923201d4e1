export interface Count { word: string; n: number }

/** Splits text. */
const SEPARATORS = /[^a-z']+/;

export function splitWords(text: string): string[] {
  const out: string[] = [];
  for (const word of text.toLowerCase().split(SEPARATORS)) {
    if (word.length > 2) out.push(word);
  }
  return out;
}

export const countWords = (words: string[]): Map<string, number> => {
  const counts = new Map<string, number>();
  words.forEach(function tally(word) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  });
  return counts;
};

export class WordStore {
  private items: Count[] = [];
  readonly scoreOf = (count: Count): number => {
    let score = 0;
    for (let i = 0; i < count.word.length; i++) score += count.word.charCodeAt(i) * count.n;
    return score;
  };
  #secret = 7;
  constructor(counts: Map<string, number>) {
    for (const [word, n] of counts) this.items.push({ word, n });
    this.#shuffle();
  }
  #shuffle(): void {
    for (let i = 0; i < this.items.length; i++) {
      const j = (i * 7919 + this.#secret) % this.items.length;
      const swap = this.items[i]!; this.items[i] = this.items[j]!; this.items[j] = swap;
    }
  }
  get total(): number {
    let sum = 0;
    for (const item of this.items) sum += item.n;
    return sum;
  }
  static merge(one: WordStore, other: WordStore): WordStore {
    const merged = new Map<string, number>();
    for (const store of [one, other]) for (const { word, n } of store.items) merged.set(word, (merged.get(word) ?? 0) + n);
    return new WordStore(merged);
  }
  ranking(): Count[] {
    return this.items.slice().sort((left, right) => this.scoreOf(right) - this.scoreOf(left));
  }
}
