"""Checks that every type in a public signature has a page: python3 tests/tools/public_types.py target/doc/jitgraft

Reads the HTML of `cargo doc --no-deps --no-default-features`. In signatures, rustdoc links each type that has a page and
leaves others as plain text. Printed are the words in signatures that begin with a capital letter and aren't links, and links
to pages that don't exist.
"""

import html.parser
import pathlib
import re
import sys

# Generic parameters, and `Self`.
PLAIN = re.compile(r"Self|[A-Z]")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.depth, self.in_link, self.skipped, self.words, self.links = 0, False, 0, [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        kinds = (attributes.get("class") or "").split()
        if self.depth:
            self.depth += 1
            if tag == "a":
                self.in_link = True
                self.links.append(attributes.get("href", ""))
        elif "code-header" in kinds or "item-decl" in kinds:
            self.depth = 1
        if self.depth and (self.skipped or "comment" in kinds):
            self.skipped += 1

    def handle_endtag(self, tag):
        if self.depth:
            self.depth -= 1
            if tag == "a":
                self.in_link = False
            if self.skipped:
                self.skipped -= 1

    def handle_data(self, data):
        if self.depth and not self.in_link and not self.skipped:
            self.words += re.findall(r"\b[A-Z]\w*\b", data)


def main():
    root = pathlib.Path(sys.argv[1])
    pages = [page for page in root.rglob("*.html") if page.name != "all.html"]
    wrong = 0
    for path in sorted(pages):
        page = Page()
        page.feed(path.read_text())
        own = set(re.findall(r"\w+", path.stem))
        variants = set(re.findall(r'id="variant\.(\w+)"', path.read_text()))
        for word in sorted(set(page.words) - own - variants):
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
