//! The source files as modules, and which of them mention which.

use super::code::{Token, item_len, tokens, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A path from the crate's root: `["formats", "cursor", "Endian"]`.
pub(super) type ModulePath = Vec<String>;

/// One file below src.
pub(super) struct SourceFile {
    /// Its name below src: `bytes/cursor.rs`.
    pub(super) name: String,
    /// The module that it is; empty for the crate's root.
    pub(super) module: ModulePath,
    /// Its code, without what is only for tests.
    pub(super) product: Vec<Token>,
}

/// A `use` of one name.
struct Import {
    /// The name by which it is known in the file.
    name: String,
    path: ModulePath,
    /// True if others see it, too.
    exported: bool,
}

/// All files of the library, by their modules.
pub(super) struct Tree {
    /// The files, by name.
    pub(super) files: Vec<SourceFile>,
    by_module: BTreeMap<ModulePath, usize>,
    imports: Vec<Vec<Import>>,
}

/// One file mentions another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    /// The file mentioned: its number in [`Tree::files`].
    pub(super) to: usize,
    /// As what it is mentioned.
    pub(super) path: String,
}

impl Tree {
    /// Reads all files below a directory.
    pub(super) fn read(src: &Path) -> Self {
        let mut sources = Vec::new();
        read_below(src, src, &mut sources);
        Self::of(sources)
    }

    /// Takes names below src, and texts.
    pub(super) fn of(mut sources: Vec<(String, String)>) -> Self {
        sources.sort();
        let files: Vec<SourceFile> = sources.iter().map(|(name, text)| source_file(name, text)).collect();
        let by_module = files.iter().enumerate().map(|(at, file)| (file.module.clone(), at)).collect();
        let mut tree = Self { files, by_module, imports: Vec::new() };
        tree.imports = tree.files.iter().map(|file| tree.imports_of(&file.module, &file.product)).collect();
        tree
    }

    /// All paths into the crate in the code of a file, tests aside, as they are written.
    pub(super) fn paths(&self, file: usize) -> BTreeSet<ModulePath> {
        let SourceFile { module, product: code, .. } = &self.files[file];
        let imports = self.imports_of(module, code).into_iter().map(|import| import.path);
        let in_code = sections(module, code).into_iter().flat_map(|(module, code)| {
            let paths = paths_in(&without_imports(&code)).into_iter();
            paths.filter_map(|path| self.absolute(&module, &path)).collect::<Vec<_>>()
        });
        imports.chain(in_code).collect()
    }

    /// The files whose things the code of a file mentions, tests aside. Items that a file only passes on (`pub use`) it
    /// does not mention; and what has been passed on is mentioned where it is, not where it is found.
    pub(super) fn mentions(&self, file: usize) -> BTreeSet<Mention> {
        let SourceFile { module, product, .. } = &self.files[file];
        let code = without_imports(product);
        let names = names_in(&code);
        let imports = self.imports[file].iter().filter(|import| !import.exported || names.contains(&import.name[..]));
        // A module is mentioned by what is taken from it.
        let imports = imports.map(|import| import.path.clone()).filter(|path| !self.by_module.contains_key(path));
        let in_code = sections(module, &code).into_iter().flat_map(|(module, code)| {
            let paths = paths_in(&code).into_iter();
            paths.filter_map(|path| self.through_imports(file, &module, path)).collect::<Vec<_>>()
        });
        let all = imports.chain(in_code);
        let found = all.filter_map(|path| Some(Mention { to: self.file_of(&path, 0)?, path: path.join("::") }));
        found.filter(|mention| mention.to != file).collect()
    }

    /// A path in the code of a file from the crate's root, if it leads into the crate.
    fn through_imports(&self, file: usize, module: &[String], path: Vec<String>) -> Option<ModulePath> {
        match self.imports[file].iter().find(|import| import.name == path[0]) {
            Some(import) => Some([&import.path[..], &path[1..]].concat()),
            None => self.absolute(module, &path),
        }
    }

    /// The file in which a thing is.
    fn file_of(&self, path: &[String], depth: usize) -> Option<usize> {
        let (at, rest) =
            (1..=path.len()).rev().find_map(|len| Some((*self.by_module.get(&path[..len])?, &path[len..])))?;
        let imported = rest.first().and_then(|name| self.imports[at].iter().find(|import| import.name == *name));
        match imported {
            // Names that lead in a circle do not compile.
            Some(import) if depth < 10 => self.file_of(&[&import.path[..], &rest[1..]].concat(), depth + 1),
            _ => Some(at),
        }
    }

    /// A path as written in a module, from the crate's root; `None` if it does not lead into the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<ModulePath> {
        let supers = path.iter().take_while(|word| *word == "super").count();
        let (from, rest) = match path.first()?.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (module, &path[1..]),
            "super" => (&module[..module.len().checked_sub(supers)?], &path[supers..]),
            child if self.by_module.contains_key(&[module, &[child.to_owned()]].concat()) => (module, path),
            _ => return None,
        };
        Some([from, rest].concat())
    }

    fn imports_of(&self, module: &[String], code: &[Token]) -> Vec<Import> {
        let mut imports = Vec::new();
        for (module, code) in sections(module, code) {
            for at in (0..code.len()).filter(|&at| is_import(&code, at)) {
                let exported = at > 0 && (code[at - 1].is_word("pub") || code[at - 1].is_mark(')'));
                let mut leaves = Vec::new();
                use_tree(&mut &code[at + 1..], &[], &mut leaves);
                for (path, name) in leaves {
                    let path = self.absolute(&module, &path);
                    imports.extend(path.map(|path| Import { name, path, exported }));
                }
            }
        }
        imports
    }
}

fn read_below(root: &Path, dir: &Path, sources: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_below(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            sources.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

fn source_file(name: &str, text: &str) -> SourceFile {
    let mut module: ModulePath = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    module.pop_if(|last| last == "mod");
    if module == ["lib"] {
        module.clear();
    }
    let for_tests = module.iter().any(|part| part == "tests" || part.ends_with("_tests"));
    let product = if for_tests { Vec::new() } else { without_tests(&tokens(text)) };
    SourceFile { name: name.to_owned(), module, product }
}

/// The code of a module, and that of each module whose body is in the same file.
fn sections(module: &[String], code: &[Token]) -> Vec<(ModulePath, Vec<Token>)> {
    let (mut own, mut sections) = (Vec::new(), Vec::new());
    let mut rest = code;
    while let Some((first, behind)) = rest.split_first() {
        match behind {
            [Token::Word(name), Token::Mark('{'), ..] if first.is_word("mod") => {
                let (body, after) = behind.split_at(item_len(behind));
                let inner = [module, std::slice::from_ref(name)].concat();
                sections.extend(self::sections(&inner, &body[2..body.len() - 1]));
                rest = after;
            }
            _ => {
                own.push(first.clone());
                rest = behind;
            }
        }
    }
    sections.push((module.to_vec(), own));
    sections
}

/// True if a `use` statement begins there, and no `use<'a>` of a type.
fn is_import(code: &[Token], at: usize) -> bool {
    code[at].is_word("use") && !code.get(at + 1).is_some_and(|next| next.is_mark('<'))
}

/// The names that a tree imports: each path, and the name by which it is known. Takes the tree's tokens.
fn use_tree(code: &mut &[Token], stem: &[String], leaves: &mut Vec<(ModulePath, String)>) {
    let mut path = stem.to_vec();
    let mut name = None;
    while let Some((first, rest)) = code.split_first() {
        match first {
            Token::Word(word) if word == "as" => name = rest.first().and_then(Token::word).map(str::to_owned),
            Token::Word(word) if name.is_none() && (word != "self" || path.is_empty()) => path.push(word.clone()),
            Token::Mark('*') => path.push("*".to_owned()),
            Token::Mark('{') => {
                *code = rest;
                while !code.first().is_none_or(|next| next.is_mark('}')) {
                    use_tree(code, &path, leaves);
                    *code = code.strip_prefix(&[Token::Mark(',')]).unwrap_or(code);
                }
                *code = code.get(1..).unwrap_or_default();
                return;
            }
            Token::Mark(',' | '}' | ';') => break,
            _ => {}
        }
        *code = rest;
    }
    if let Some(last) = path.last() {
        let name = name.unwrap_or_else(|| last.clone());
        leaves.push((path, name));
    }
}

/// The code without its `use` statements and its declarations of modules.
fn without_imports(code: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let declares = code[at].is_word("mod") && code.get(at + 2).is_some_and(|end| end.is_mark(';'));
        if is_import(code, at) || declares {
            at += code[at..].iter().take_while(|token| !token.is_mark(';')).count();
        } else {
            kept.push(code[at].clone());
            at += 1;
        }
    }
    kept
}

fn followed_by_colons(code: &[Token], at: usize) -> bool {
    code.get(at + 1).is_some_and(|token| token.is_mark(':')) && code.get(at + 2).is_some_and(|token| token.is_mark(':'))
}

fn behind(code: &[Token], at: usize, mark: char) -> bool {
    at.checked_sub(1).is_some_and(|before| code[before].is_mark(mark))
}

/// All paths of more than one word.
fn paths_in(code: &[Token]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in 0..code.len() {
        let continues = start >= 2 && behind(code, start, ':') && behind(code, start - 1, ':');
        let says_who_sees = start >= 3 && code[start - 1].is_word("in") && code[start - 3].is_word("pub");
        let Some(first) = code[start].word().filter(|_| !continues && !says_who_sees) else { continue };
        let (mut at, mut path) = (start, vec![first.to_owned()]);
        while let Some(next) = code.get(at + 3).and_then(Token::word).filter(|_| followed_by_colons(code, at)) {
            path.push(next.to_owned());
            at += 3;
        }
        if followed_by_colons(code, start) {
            paths.push(path);
        }
    }
    paths
}

/// All words that may be names of imported things: no methods and fields.
fn names_in(code: &[Token]) -> BTreeSet<&str> {
    let is_label = |at: usize| code.get(at + 1).is_some_and(|next| next.is_mark(':')) && !followed_by_colons(code, at);
    let words = code.iter().enumerate().filter(|&(at, _)| !behind(code, at, '.') && !is_label(at));
    words.filter_map(|(_, token)| token.word()).collect()
}
