//! The page's script. In the repository it consists of several JavaScript modules; in the page it is a single inline
//! module, because a page opened from disk cannot import other files.
//!
//! A module imports by `import { a, b } from "./other.js";` and exports by writing `export` before a declaration. In
//! the joined script, each module comes after those that it imports, and these keywords are removed. Two modules must
//! therefore not declare the same name at their top level.

/// Includes files of the folder `js` in the program, as a list of their names and texts.
macro_rules! include_modules {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("js/", $name)))),*] };
}

/// All modules by file name, in any order.
#[rustfmt::skip]
const MODULES: &[(&str, &str)] = include_modules![
    "activity.js", "arrows.js", "box_actions.js", "box_categories.js", "brush.js", "call_tree.js", "calls.js",
    "clipboard.js", "code.js", "code_machine.js", "code_rows.js", "code_source.js", "code_table.js", "comparison.js",
    "copy_text.js", "data.js", "difference.js", "difference_picture.js", "doctor.js", "dom.js", "file_picture.js",
    "flame.js", "flame_layout.js", "flame_model.js", "flame_paint.js", "flame_picture.js", "flame_view.js",
    "focus.js", "format.js", "functions.js", "heatmap.js", "jit_model.js", "jit_time.js", "keys.js", "labels.js",
    "lane_list.js", "lane_rows.js", "lanes.js", "latest.js", "listings.js", "main.js", "menu.js", "picture.js",
    "profile.js", "recordings.js", "search.js", "search_box.js", "search_field.js", "selection.js", "shades.js",
    "significance.js", "state.js", "table.js", "table_row.js", "table_rows.js", "time_axis.js", "time_bar.js",
    "time_bars.js", "time_lanes.js", "time_ticks.js", "timeline.js", "tree.js", "tree_picture.js", "virtual_rows.js",
];

/// The page's script: `main.js` and all modules that it needs, without comments.
pub(super) fn script() -> String {
    let script = join_modules("main.js", MODULES);
    let code: Vec<&str> = code_lines(&script).collect();
    code.join("\n") + "\n"
}

/// The script of a flame graph: `picture.js` and all modules that it needs, without comments and indentation.
pub(in super::super) fn picture_script() -> String {
    let script = join_modules("picture.js", MODULES);
    let code: Vec<&str> = code_lines(&script).map(str::trim).collect();
    format!("(() => {{\n'use strict';\n{}\n}})();\n", code.join("\n"))
}

/// The lines of a script that aren't empty and contain more than a comment. Every page and picture has a copy of the
/// script, of which a fifth would be comments.
fn code_lines(script: &str) -> impl Iterator<Item = &str> {
    script.lines().filter(|line| {
        let line = line.trim_start();
        let is_comment = ["//", "/*", "*"].iter().any(|start| line.starts_with(start));
        !is_comment && !line.is_empty()
    })
}

/// A module, split into its imports and the rest.
#[derive(Debug, Default)]
struct ModuleParts<'t> {
    /// The imported names, each with the file name of the module that it comes from: (name, file name).
    imports: Vec<(&'t str, &'t str)>,
    /// The rest of the text, with the `export` keywords removed.
    text: String,
}

impl<'t> ModuleParts<'t> {
    /// Parses the text of a module. Import statements must begin a line, and end with a semicolon.
    fn parse(text: &'t str) -> Self {
        let mut module = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            if rest.starts_with("import ") {
                let (statement, following) = split_after(rest, ';');
                module.add_imports(statement);
                rest = following.strip_prefix('\n').unwrap_or(following);
            } else {
                let (line, following) = split_after(rest, '\n');
                module.text.push_str(line.strip_prefix("export ").unwrap_or(line));
                rest = following;
            }
        }
        module
    }

    /// Adds the names of a statement such as `import { a, b } from "./other.js";`.
    fn add_imports(&mut self, statement: &'t str) {
        let from = statement.split('"').nth(1).and_then(|path| path.strip_prefix("./")).unwrap_or_default();
        let names = statement.split(['{', '}']).nth(1).unwrap_or_default();
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        self.imports.extend(names.map(|name| (name, from)));
    }
}

/// Splits a text after the first `end`. If there is none, the second part is empty.
fn split_after(text: &str, end: char) -> (&str, &str) {
    text.split_at(text.find(end).map_or(text.len(), |index| index + end.len_utf8()))
}

/// Joins the module `first` with all modules that it imports, directly or indirectly. Each module comes after its own
/// imports.
fn join_modules(first: &str, modules: &[(&str, &str)]) -> String {
    /// A step of the walk through the modules. The text is the module's name.
    enum Step<'t> {
        /// Look at the module's imports first, then write it.
        Visit(&'t str),
        /// Write the module, because its imports have been written.
        Write(&'t str),
    }
    let mut script = String::new();
    let mut written = Vec::new();
    // The steps still to take. The last one is taken next.
    let mut steps = vec![Step::Visit(first)];
    while let Some(step) = steps.pop() {
        let (Step::Visit(name) | Step::Write(name)) = step;
        // Several modules may import the same one.
        if written.contains(&name) {
            continue;
        }
        let text = modules.iter().find(|(other, _)| *other == name).map_or("", |(_, text)| *text);
        let module = ModuleParts::parse(text);
        match step {
            Step::Visit(_) => {
                steps.push(Step::Write(name));
                // Push the imports in reverse, because the last one pushed is taken next.
                for (_, imported) in module.imports.iter().rev() {
                    steps.push(Step::Visit(imported));
                }
            }
            Step::Write(_) => {
                script.push_str(&module.text);
                written.push(name);
            }
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The names that a module declares at its top level, each with whether it is exported.
    fn declared_names(text: &str) -> Vec<(String, bool)> {
        let declaration = |line: &str| {
            let (exported, line) = line.strip_prefix("export ").map_or((false, line), |line| (true, line));
            let line = line.strip_prefix("async ").unwrap_or(line);
            let rest = ["function* ", "function ", "const ", "let ", "class "]
                .iter()
                .find_map(|word| line.strip_prefix(word))?;
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').collect();
            assert!(!name.is_empty(), "one name a declaration: {line}");
            Some((name, exported))
        };
        text.lines().filter_map(declaration).collect()
    }

    #[test]
    fn a_module_follows_what_it_imports_once_and_without_the_words_for_it() {
        let modules = [
            ("main.js", "import { f } from \"./f.js\";\nimport {\n  g,\n} from \"./g.js\";\nf(g);\n"),
            ("f.js", "// doubles\nimport { g } from \"./g.js\";\nexport function f() { return g * 2; }\n"),
            ("g.js", "export const g = 1;\nconst exported = 2;\n"),
            ("other.js", "alone();\n"),
        ];
        let expected = "const g = 1;\nconst exported = 2;\n// doubles\nfunction f() { return g * 2; }\nf(g);\n";
        assert_eq!(join_modules("main.js", &modules), expected);
    }

    #[test]
    fn every_name_at_the_top_is_one_module_s_and_what_is_imported_is_exported() {
        let mut owners: BTreeMap<String, (&str, bool)> = BTreeMap::new();
        for (module, text) in MODULES {
            for (name, exported) in declared_names(text) {
                let before = owners.insert(name.clone(), (module, exported));
                assert!(before.is_none(), "{name} is declared in {module} and {before:?}");
            }
        }
        for (module, text) in MODULES {
            for (name, from) in ModuleParts::parse(text).imports {
                assert_eq!(owners.get(name), Some(&(from, true)), "{module} imports {name} of {from}");
            }
        }
    }

    #[test]
    fn the_scripts_have_all_modules_and_nothing_that_ends_them() {
        let (page, picture) = (join_modules("main.js", MODULES), join_modules("picture.js", MODULES));
        for (module, text) in MODULES {
            let own = &ModuleParts::parse(text).text;
            assert!(page.contains(own) || picture.contains(own), "nobody imports {module}");
        }
        let ends = ["\nimport ", "\nexport ", "</script", "<!--", "]]>"];
        let dangerous = ["innerHTML", "insertAdjacentHTML", "document.write", "eval("];
        for word in ends.into_iter().chain(dangerous) {
            assert!(!page.contains(word) && !picture_script().contains(word), "{word}");
        }
    }

    #[test]
    fn scripts_lose_comments_only() {
        for (first, script) in [("main.js", script()), ("picture.js", picture_script())] {
            let modules = join_modules(first, MODULES);
            // True within a comment of several lines.
            let mut in_comment = false;
            for line in modules.lines().map(str::trim).filter(|line| !line.is_empty()) {
                in_comment |= line.starts_with("/*");
                let is_comment = in_comment || line.starts_with("//");
                assert_eq!(code_lines(line).next().is_none(), is_comment, "{line}");
                assert!(is_comment || script.contains(line), "{line}");
                // Nothing follows a comment in its last line.
                assert!(!in_comment || !line.contains("*/") || line.ends_with("*/"), "{line}");
                in_comment &= !line.ends_with("*/");
            }
        }
    }

    #[test]
    fn every_file_beside_is_a_module_of_the_list() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/render/viewer/js");
        let names =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(".js")).collect();
        names.sort();
        assert_eq!(names, MODULES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
