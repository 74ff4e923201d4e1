"""Checks that every type in a public signature has a page: python3 tests/tools/public_types.py target/doc/jitgraft

Reads the HTML of `cargo doc --no-deps --no-default-features`. In signatures, rustdoc links each type that has a page and
leaves others as plain text. Printed are the words in signatures that begin with a capital letter and aren't links, and links
to pages that don't exist. Implementations for all types (such as `From<T> for T`) don't count.
"""

import html.parser
import pathlib
import re
import sys

# Generic parameters, and `Self`.
PLAIN = re.compile(r"Self|[A-Z]")

# What begins the lists of implementations that the compiler derives, and of those for all types.
DERIVED = re.compile(r'id="(synthetic|blanket)-implementations"')


def words_of(signature, unlinked):
    """The words of a signature that name types. `unlinked` has the parts of it that aren't links."""
    named = set()
    for part in unlinked:
        named |= set(re.findall(r"\b[A-Z]\w*\b", re.sub(r"//.*", "", part)))
    parameters = re.match(r"[^(]*?\bfn \w+<(.*?)>\(", signature, re.DOTALL)
    declared = set(re.findall(r"\w+", parameters[1])) if parameters else set()
    # Associated types: `type Item`, `Item = …`, `Self::Item`.
    associated = set(re.findall(r"(?:\btype |::)([A-Z]\w*)", signature)) | set(re.findall(r"\b([A-Z]\w*) ?=", signature))
    return named - declared - associated


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.depth, self.in_link, self.words, self.links = 0, False, set(), []
        self.signature, self.unlinked = "", []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        kinds = (attributes.get("class") or "").split()
        if self.depth:
            self.depth += 1
            if tag == "a":
                self.in_link = True
                self.links.append(attributes.get("href", ""))
        elif "code-header" in kinds or "item-decl" in kinds:
            self.depth, self.signature, self.unlinked = 1, "", []

    def handle_endtag(self, tag):
        if self.depth:
            self.depth -= 1
            if tag == "a":
                self.in_link = False
            if not self.depth:
                self.words |= words_of(self.signature, self.unlinked)

    def handle_data(self, data):
        if self.depth:
            self.signature += data
            if not self.in_link:
                self.unlinked.append(data)


def main():
    root = pathlib.Path(sys.argv[1])
    pages = [page for page in root.rglob("*.html") if page.name != "all.html"]
    wrong = 0
    for path in sorted(pages):
        page, text = Page(), path.read_text()
        derived = DERIVED.search(text)
        page.feed(text[: derived.start()] if derived else text)
        own = set(re.findall(r"\w+", path.stem))
        variants = set(re.findall(r'id="variant\.(\w+)"', text))
        for word in sorted(page.words - own - variants):
            if not PLAIN.fullmatch(word):
                wrong += 1
                print(f"{path.relative_to(root)}: {word} has no page")
        for link in sorted(set(page.links)):
            target = link.split("#")[0]
            if target and "://" not in target and not (path.parent / target).exists():
                wrong += 1
                print(f"{path.relative_to(root)}: {link} does not exist")
    print(f"{len(pages)} pages, {wrong} types without one")
    sys.exit(1 if wrong or not pages else 0)


main()
