// A grammar check of paragraphs with harper.js. Each line of the file is a place, a tab and a text; each line that is printed is a rule, the
// words that it finds, the place, and the words around them.
import { readFileSync } from "node:fs";
import { Dialect, LocalLinter } from "harper.js";
import { binary } from "harper.js/binary";

// Rules of style and spelling that don't suit texts full of names, units and lists.
const LEFT_OUT = ["SpellCheck", "LongSentences", "SentenceCapitalization", "SplitWords", "MergeWords", "CompoundNouns", "Dashes", "Spaces",
  "OrthographicConsistency", "OxfordComma", "MassNouns", "DiscourseMarkers", "NumericRangeEnDash"];

const linter = new LocalLinter({ binary, dialect: Dialect.American });
await linter.setup();
const rules = await linter.getLintConfig();
for (const rule of Object.keys(rules)) {
  if (LEFT_OUT.includes(rule) || rule.startsWith("Expand")) rules[rule] = false;
}
await linter.setLintConfig(rules);

const lines = readFileSync(process.argv[2], "utf8").split("\n").map((line) => line.split("\t"));
for (const [place, text] of lines.filter(([, text]) => text)) {
  for (const [rule, lints] of Object.entries(await linter.organizedLints(text))) {
    for (const lint of lints.filter(() => rules[rule] !== false)) {
      const { start, end } = lint.span();
      console.log([rule, lint.get_problem_text(), place, text.slice(Math.max(0, start - 30), end + 30)].join("\t"));
    }
  }
}
