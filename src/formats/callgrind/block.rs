//! One function's block, decoded: positions absolute, every callee with its object and file.

use super::index::{Ref, State};
use super::line::{Key, Line, NameField, Space, line, lines, name_field};
use super::positions::{Decoder, Position, number};
use rustc_hash::FxHashMap;

/// A block from its `fn=` line to the next function's statements.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The name behind `fn=`.
    pub(super) function: NameField<'a>,
    /// Everything below, in order.
    pub(super) items: Vec<Item<'a>>,
    /// Names of objects and files that are defined in here, in order.
    pub(super) definitions: Vec<(Space, u32, &'a [u8])>,
    /// Names of functions that are defined in here.
    pub(super) functions: FxHashMap<u32, &'a [u8]>,
    /// Whether positions are compressed.
    pub(super) compressed: bool,
}

/// One cost line, call, jump, or something unknown.
#[derive(Debug)]
pub(super) struct Item<'a> {
    /// Where; `None` for unknown lines, which belong to the function as a whole.
    pub(super) position: Option<Position>,
    /// The source file there.
    pub(super) file: Option<Ref<'a>>,
    /// What it is.
    pub(super) kind: Kind<'a>,
}

/// What an [`Item`] is.
#[derive(Debug)]
pub(super) enum Kind<'a> {
    /// Self cost.
    Cost(&'a [u8]),
    /// A call and its inclusive cost.
    Call { callee: Callee<'a>, count: &'a [u8], target: Position, costs: &'a [u8] },
    /// `jump=` or `jcnd=`: the text in front of the target, and statements before it.
    Jump {
        conditional: bool,
        counts: &'a [u8],
        target: Position,
        file: Option<Ref<'a>>,
        function: Option<NameField<'a>>,
    },
    /// Passed on as it is.
    Unknown(&'a [u8]),
}

/// The function called, as KCachegrind understands it: what is not said is as in the caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callee<'a> {
    /// Its object.
    pub(super) ob: Option<Ref<'a>>,
    /// Its source file.
    pub(super) file: Option<Ref<'a>>,
    /// Its name.
    pub(super) function: NameField<'a>,
}

impl<'a> Block<'a> {
    /// Decodes a block. `state` is what it inherits. `None` if anything in it does not add up: then it had better be
    /// left as it is.
    pub(super) fn parse(text: &'a [u8], state: State<'a>, every_line_moves: bool) -> Option<Self> {
        let mut lines = lines(text);
        let Line::Spec(Key::Fn, name) = line(lines.next()?.1) else { return None };
        let mut parser = Parser::new(name_field(name), state, every_line_moves);
        while let Some((_, text)) = lines.next() {
            match line(text) {
                Line::Spec(key @ (Key::Calls | Key::Jump | Key::Jcnd), value) => {
                    parser.site(key, value, lines.next()?.1)?;
                }
                Line::Spec(key, value) => parser.name(key, value, text)?,
                Line::Cost(text) => {
                    let (position, costs) = parser.decoder.cost(text)?;
                    parser.push(Some(position), Kind::Cost(costs));
                }
                Line::Other if text.trim_ascii().is_empty() => {}
                Line::Other => parser.push(None, Kind::Unknown(text)),
                Line::Header(..) => return None,
            }
        }
        parser.block.compressed = parser.decoder.saw_relative;
        Some(parser.block)
    }
}

struct Parser<'a> {
    block: Block<'a>,
    decoder: Decoder,
    state: State<'a>,
    file: Option<Ref<'a>>,
    cob: Option<Ref<'a>>,
    cfi: Option<Ref<'a>>,
    cfn: Option<NameField<'a>>,
    jfi: Option<Ref<'a>>,
    jfn: Option<NameField<'a>>,
}

impl<'a> Parser<'a> {
    fn new(function: NameField<'a>, state: State<'a>, every_line_moves: bool) -> Self {
        let (items, definitions) = (Vec::new(), Vec::new());
        let block = Block { function, items, definitions, functions: FxHashMap::default(), compressed: false };
        let decoder = Decoder::new(state.columns, every_line_moves);
        // `fn=` resets the file to the last `fl=`.
        let file = state.fl;
        let mut parser = Self { block, decoder, state, file, cob: None, cfi: None, cfn: None, jfi: None, jfn: None };
        parser.define(Space::Function, function);
        parser
    }

    fn push(&mut self, position: Option<Position>, kind: Kind<'a>) {
        self.block.items.push(Item { position, file: self.file, kind });
    }

    fn define(&mut self, space: Space, field: NameField<'a>) {
        let NameField::Define(id, name) = field else { return };
        if space == Space::Function {
            self.block.functions.insert(id, name);
        } else {
            self.block.definitions.push((space, id, name));
        }
    }

    fn name(&mut self, key: Key, value: &'a [u8], text: &'a [u8]) -> Option<()> {
        let Some(space) = key.space() else {
            self.push(None, Kind::Unknown(text));
            return Some(());
        };
        let field = name_field(value);
        if key == Key::Frfn {
            self.push(None, Kind::Unknown(text));
            return Some(());
        }
        self.define(space, field);
        match key {
            Key::Fi | Key::Fe => self.file = Some(Ref::of(field)),
            Key::Cob => self.cob = Some(Ref::of(field)),
            Key::Cfi => self.cfi = Some(Ref::of(field)),
            Key::Cfn => self.cfn = Some(field),
            Key::Jfi => self.jfi = Some(Ref::of(field)),
            Key::Jfn => self.jfn = Some(field),
            // The next function's; the block would have ended before them.
            _ => return None,
        }
        Some(())
    }

    /// `calls=`, `jump=` or `jcnd=` and the line that must follow.
    fn site(&mut self, key: Key, value: &'a [u8], next: &'a [u8]) -> Option<()> {
        let value = value.trim_ascii();
        let len = value.iter().position(u8::is_ascii_whitespace)?;
        let (count, target) = value.split_at(len);
        // The manual writes `jcnd=executed followed target`, valgrind `jcnd=followed/executed target`.
        let two_words = key == Key::Jcnd && !count.contains(&b'/');
        let (count, target) = if two_words {
            let from = len + target.iter().position(|byte| !byte.is_ascii_whitespace())?;
            let end = from + value[from..].iter().position(u8::is_ascii_whitespace)?;
            value.split_at(end)
        } else {
            (count, target)
        };
        let (target, _) = self.decoder.peek(target)?;
        let Line::Cost(next) = line(next) else { return None };
        let (position, costs) = self.decoder.site(next)?;
        let kind = if key == Key::Calls {
            let function = self.cfn.take()?;
            let callee =
                Callee { ob: self.cob.take().or(self.state.ob), file: self.cfi.take().or(self.file), function };
            Kind::Call { callee, count, target, costs }
        } else {
            let (file, function) = (self.jfi.take(), self.jfn.take());
            Kind::Jump { conditional: key == Key::Jcnd, counts: count, target, file, function }
        };
        self.push(Some(position), kind);
        Some(())
    }
}

impl Item<'_> {
    /// Adds its costs (self, or inclusive of a call) to a sum for each event. `None` if one is not a number.
    pub(super) fn add_costs(&self, sums: &mut Vec<u64>) -> Option<()> {
        let (Kind::Cost(costs) | Kind::Call { costs, .. }) = self.kind else { return Some(()) };
        add_costs(costs, sums)
    }
}

/// Adds the numbers of a cost line to a sum for each event.
pub(super) fn add_costs(costs: &[u8], sums: &mut Vec<u64>) -> Option<()> {
    let words = costs.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for (event, word) in words.enumerate() {
        let cost = number(word)?;
        match sums.get_mut(event) {
            Some(sum) => *sum = sum.checked_add(cost)?,
            None => sums.push(cost),
        }
    }
    Some(())
}

/// The first number of a cost line.
pub(super) fn first_cost(costs: &[u8]) -> u64 {
    let end = costs.iter().position(u8::is_ascii_whitespace).unwrap_or(costs.len());
    number(&costs[..end]).unwrap_or(0)
}
