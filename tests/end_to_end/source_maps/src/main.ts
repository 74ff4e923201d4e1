import { splitWords, countWords, WordStore } from './words';
import Matrix, { makeIdentity, helpers } from './matrix';
import { marked } from 'marked';
import Handlebars from 'handlebars';
import * as acorn from 'acorn';
import _ from 'lodash';

const TEXT = 'the quick brown fox jumps over the lazy dog and it was the best of times it was the worst of times '.repeat(20);

function makeText(round: number): string {
  const parts: string[] = [];
  for (let i = 0; i < 20; i++) parts.push(TEXT.slice((round * 31 + i) % 900));
  return parts.join(' ');
}
const template = Handlebars.compile('<ul>{{#each items}}<li>{{word}}: {{n}}</li>{{/each}}</ul>');

async function runRound(round: number): Promise<number> {
  const store = new WordStore(countWords(splitWords(makeText(round))));
  const both = WordStore.merge(store, store);
  let checksum = both.total + both.ranking().length;
  const matrix = new Matrix(24);
  const product = matrix.dotProduct(makeIdentity(24));
  checksum += helpers.trace(product) + helpers.norm(product) + [...helpers.cells(product)].length;
  checksum += marked.parse(('# Title ' + round + '\n\n* a *b* `c` [d](e)\n\n| x | y |\n|---|---|\n| 1 | 2 |\n').repeat(5)).toString().length;
  checksum += template({ items: both.ranking().slice(0, 20) }).length;
  const ast = acorn.parse('function f(a,b){ return a.map(x => x*b).filter(Boolean) } (class extends Object { #x=1; get y(){return this.#x} });'.repeat(5), { ecmaVersion: 2022 });
  checksum += (ast as any).body.length;
  checksum += _.sum(_.map(_.groupBy(_.range(500), (n) => n % 7), (group, key) => _.sortBy(group, (value) => -value).length + key.length));
  checksum += _.size(_.cloneDeep({ a: { b: [1, 2, 3, { c: new Date(0) }] } }));
  return checksum;
}
const debounceTick = ((count) => () => ++count)(0);
(async () => {
  let sum = 0;
  const rounds = Number(process.argv[2] ?? 60);
  for (let round = 0; round < rounds; round++) { sum += await runRound(round); debounceTick(); }
  console.log(Math.round(sum));
})();
