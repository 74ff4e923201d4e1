// Counts words in a generated text and prints the most frequent ones.
function makeText(paragraphs) {
  const words = ["profile", "stack", "frame", "inline", "tier", "deopt", "heap", "event", "loop", "sample"];
  let text = "";
  for (let i = 0; i < paragraphs; i++) {
    for (let j = 0; j < 200; j++) text += words[(i * 7 + j * j) % words.length] + (j % 17 === 0 ? ". " : " ");
    text += "\n";
  }
  return text;
}

function splitWords(text) {
  return text.split(/[^a-z]+/).filter((word) => word.length > 0);
}

function countWords(words) {
  const counts = [];
  for (const word of words) {
    const entry = counts.find((other) => other.word === word);
    if (entry) entry.count++;
    else counts.push({ word, count: 1 });
  }
  return counts;
}

function uniqueSorted(words) {
  let unique = [];
  for (const word of words) if (!unique.includes(word)) unique = unique.concat([word]).sort();
  return unique;
}

const text = makeText(12000);
const words = splitWords(text);
const numbered = words.map((word, index) => word + (index % 2500));
console.log(countWords(words).sort((a, b) => b.count - a.count).slice(0, 3));
console.log(uniqueSorted(numbered.slice(0, 400000)).length);
