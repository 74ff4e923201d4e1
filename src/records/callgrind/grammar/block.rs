//! The block of one function, decoded: positions absolute, every callee with its object and file; and what its lines inherit
//! from those before it.

use super::cost_lines::{CostLines, Stretch, StretchOf, are_short};
use super::names::{IdSpace, NameField, NameRef, name_field};
use super::numbers::{add_costs, first_cost};
use super::positions::{Columns, Position, PositionDecoder};
use super::statements::{Keyword, Statement, lines};
use rustc_hash::FxHashMap;

/// The context that the following lines inherit.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct BlockContext<'a> {
    /// The last `ob=`.
    pub(in super::super) ob: Option<NameRef<'a>>,
    /// The last `fl=`.
    pub(in super::super) fl: Option<NameRef<'a>>,
    /// An `fi=` or `fe=` after it: where some readers believe the next function to be.
    pub(in super::super) open_file: Option<NameRef<'a>>,
    /// The columns in front of the costs.
    pub(in super::super) columns: Columns,
}

impl<'a> BlockContext<'a> {
    /// Follows a statement.
    pub(in super::super) fn apply(&mut self, line: Statement<'a>) {
        match line {
            Statement::Spec(Keyword::Ob, value) => self.ob = Some(NameRef::of(name_field(value))),
            Statement::Spec(Keyword::Fl, value) => {
                self.fl = Some(NameRef::of(name_field(value)));
                self.open_file = None;
            }
            Statement::Spec(Keyword::Fi | Keyword::Fe, value) => self.open_file = Some(NameRef::of(name_field(value))),
            Statement::Header(b"positions", value) => self.columns = Columns::parse(value).unwrap_or_default(),
            _ => {}
        }
    }
}

/// A block from its `fn=` line to the next function's statements.
#[derive(Debug)]
pub(in super::super) struct FunctionBlock<'a> {
    /// The name behind `fn=`.
    pub(in super::super) function: NameField<'a>,
    /// Everything below, in order.
    pub(in super::super) items: Vec<BlockItem<'a>>,
    /// Names of objects and files that are defined in here, in order.
    pub(in super::super) definitions: Vec<(IdSpace, u32, &'a [u8])>,
    /// Names of functions that are defined in here.
    pub(in super::super) functions: FxHashMap<u32, &'a [u8]>,
    /// True if positions are compressed.
    pub(in super::super) compressed: bool,
    /// The last `fi=` or `fe=` in here.
    pub(in super::super) open_file: Option<NameRef<'a>>,
    /// The length of its text.
    pub(in super::super) len: usize,
}

/// One or more cost lines, a call, a jump, or something unknown.
#[derive(Debug)]
pub(in super::super) struct BlockItem<'a> {
    /// Its position; for unknown lines, which belong to the function as a whole.
    pub(in super::super) position: Option<Position>,
    /// The source file there.
    pub(in super::super) file: Option<NameRef<'a>>,
    /// Its kind.
    pub(in super::super) kind: ItemKind<'a>,
}

/// The kind of a [`BlockItem`].
#[derive(Debug)]
pub(in super::super) enum ItemKind<'a> {
    /// Self cost, on plain lines.
    Lines(CostLines<'a>),
    /// Self cost, on a line that must be written anew.
    Cost(&'a [u8]),
    /// A call and its inclusive cost.
    Call { callee: Callee<'a>, count: &'a [u8], target: Position, costs: &'a [u8] },
    /// `jump=` or `jcnd=`: the text in front of the target, and statements before it.
    Jump {
        conditional: bool,
        counts: &'a [u8],
        target: Position,
        file: Option<NameRef<'a>>,
        function: Option<NameField<'a>>,
    },
    /// Passed on as it is.
    Unknown(&'a [u8]),
}

/// The function called, as KCachegrind understands it: what is not said is as in the caller.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Callee<'a> {
    /// Its object.
    pub(in super::super) ob: Option<NameRef<'a>>,
    /// Its source file.
    pub(in super::super) file: Option<NameRef<'a>>,
    /// Its name.
    pub(in super::super) function: NameField<'a>,
}

/// The memory of a block, for the next: fresh memory for each would cost more than filling it.
#[derive(Debug, Default)]
pub(in super::super) struct BlockMemory<'a> {
    items: Vec<BlockItem<'a>>,
    definitions: Vec<(IdSpace, u32, &'a [u8])>,
    functions: FxHashMap<u32, &'a [u8]>,
}

impl<'a> FunctionBlock<'a> {
    /// Decodes the block at the beginning of a text. `context` is what it inherits. `None` if anything in it does not
    /// add up: then it had better be left as it is. Cost lines are one item as long as the addresses stay in one of the
    /// stretches that are reported.
    pub(in super::super) fn parse(
        text: &'a [u8],
        context: BlockContext<'a>,
        every_line_moves: bool,
        stretch_of: &mut StretchOf<'_>,
        memory: BlockMemory<'a>,
    ) -> Option<Self> {
        let mut rest = text;
        let Statement::Spec(Keyword::Fn, name) = Statement::parse(next_line(&mut rest)?) else { return None };
        let mut parser = BlockParser::new(name_field(name), context, every_line_moves, memory);
        let mut stretch = Stretch::new(stretch_of);
        while let Some(&first) = rest.first() {
            if matches!(first, b'0'..=b'9' | b'+' | b'-' | b'*')
                && let Some((run, len)) = CostLines::read(rest, &mut parser.decoder, &mut stretch)
            {
                parser.push(Some(run.first), ItemKind::Lines(run));
                rest = &rest[len..];
                continue;
            }
            let from_here = rest;
            let text = next_line(&mut rest)?;
            match Statement::parse(text) {
                Statement::Spec(Keyword::Fn | Keyword::Fl | Keyword::Ob, _) | Statement::Header(..) => {
                    rest = from_here;
                    break;
                }
                Statement::Spec(key @ (Keyword::Calls | Keyword::Jump | Keyword::Jcnd), value) => {
                    parser.site(key, value, next_line(&mut rest)?)?;
                }
                Statement::Spec(key, value) => parser.name(key, value, text)?,
                Statement::Cost(text) => {
                    let (position, costs) = parser.decoder.cost(text)?;
                    parser.push(Some(position), ItemKind::Cost(costs));
                }
                Statement::Other if text.trim_ascii().is_empty() => {}
                Statement::Other => parser.push(None, ItemKind::Unknown(text)),
            }
        }
        parser.block.compressed = parser.decoder.saw_relative;
        parser.block.len = text.len() - rest.len();
        Some(parser.block)
    }

    /// Its memory.
    pub(in super::super) fn into_memory(self) -> BlockMemory<'a> {
        let Self { mut items, mut definitions, mut functions, .. } = self;
        items.clear();
        definitions.clear();
        functions.clear();
        BlockMemory { items, definitions, functions }
    }
}

/// Takes a line off, without its line feed.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (_, line) = lines(rest).next()?;
    *rest = rest.get(line.len() + 1..).unwrap_or_default();
    Some(line)
}

struct BlockParser<'a> {
    block: FunctionBlock<'a>,
    decoder: PositionDecoder,
    context: BlockContext<'a>,
    file: Option<NameRef<'a>>,
    cob: Option<NameRef<'a>>,
    cfi: Option<NameRef<'a>>,
    cfn: Option<NameField<'a>>,
    jfi: Option<NameRef<'a>>,
    jfn: Option<NameField<'a>>,
}

impl<'a> BlockParser<'a> {
    fn new(
        function: NameField<'a>,
        context: BlockContext<'a>,
        every_line_moves: bool,
        memory: BlockMemory<'a>,
    ) -> Self {
        let BlockMemory { items, definitions, functions } = memory;
        let (compressed, open_file, len) = (false, None, 0);
        let block = FunctionBlock { function, items, definitions, functions, compressed, open_file, len };
        let decoder = PositionDecoder::new(context.columns, every_line_moves);
        // `fn=` resets the file to the last `fl=`.
        let file = context.fl;
        let mut parser = Self { block, decoder, context, file, cob: None, cfi: None, cfn: None, jfi: None, jfn: None };
        parser.define(IdSpace::Function, function);
        parser
    }

    fn push(&mut self, position: Option<Position>, kind: ItemKind<'a>) {
        self.block.items.push(BlockItem { position, file: self.file, kind });
    }

    fn define(&mut self, space: IdSpace, field: NameField<'a>) {
        let NameField::Define(id, name) = field else { return };
        if space == IdSpace::Function {
            self.block.functions.insert(id, name);
        } else {
            self.block.definitions.push((space, id, name));
        }
    }

    fn name(&mut self, key: Keyword, value: &'a [u8], text: &'a [u8]) -> Option<()> {
        let Some(space) = key.space() else {
            self.push(None, ItemKind::Unknown(text));
            return Some(());
        };
        let field = name_field(value);
        if key == Keyword::Frfn {
            self.push(None, ItemKind::Unknown(text));
            return Some(());
        }
        self.define(space, field);
        match key {
            Keyword::Fi | Keyword::Fe => {
                self.file = Some(NameRef::of(field));
                self.block.open_file = self.file;
            }
            Keyword::Cob => self.cob = Some(NameRef::of(field)),
            Keyword::Cfi => self.cfi = Some(NameRef::of(field)),
            Keyword::Cfn => self.cfn = Some(field),
            Keyword::Jfi => self.jfi = Some(NameRef::of(field)),
            Keyword::Jfn => self.jfn = Some(field),
            // The next function's; the block would have ended before them.
            _ => return None,
        }
        Some(())
    }

    /// `calls=`, `jump=` or `jcnd=` and the line that must follow.
    fn site(&mut self, key: Keyword, value: &'a [u8], next: &'a [u8]) -> Option<()> {
        let value = value.trim_ascii();
        let len = value.iter().position(u8::is_ascii_whitespace)?;
        let (count, target) = value.split_at(len);
        // The manual writes `jcnd=executed followed target`, valgrind `jcnd=followed/executed target`.
        let two_words = key == Keyword::Jcnd && !count.contains(&b'/');
        let (count, target) = if two_words {
            let from = len + target.iter().position(|byte| !byte.is_ascii_whitespace())?;
            let end = from + value[from..].iter().position(u8::is_ascii_whitespace)?;
            value.split_at(end)
        } else {
            (count, target)
        };
        let (target, _) = self.decoder.peek(target)?;
        let Statement::Cost(next) = Statement::parse(next) else { return None };
        let (position, costs) = self.decoder.site(next)?;
        let kind = if key == Keyword::Calls {
            let function = self.cfn.take()?;
            let callee =
                Callee { ob: self.cob.take().or(self.context.ob), file: self.cfi.take().or(self.file), function };
            ItemKind::Call { callee, count, target, costs }
        } else {
            let (file, function) = (self.jfi.take(), self.jfn.take());
            ItemKind::Jump { conditional: key == Keyword::Jcnd, counts: count, target, file, function }
        };
        self.push(Some(position), kind);
        Some(())
    }
}

impl BlockItem<'_> {
    /// Adds its costs (self, or inclusive of a call) to a sum for each event. `None` if one is not a number.
    pub(in super::super) fn add_costs(&self, sums: &mut Vec<u64>) -> Option<()> {
        match &self.kind {
            ItemKind::Lines(run) => run.each().try_for_each(|(_, costs)| add_costs(costs, sums)),
            ItemKind::Cost(costs) | ItemKind::Call { costs, .. } => add_costs(costs, sums),
            ItemKind::Jump { .. } | ItemKind::Unknown(_) => Some(()),
        }
    }

    /// The number of lines with costs; `None` if some of them may not be numbers, or large ones.
    pub(in super::super) fn short_costs(&self) -> Option<usize> {
        match &self.kind {
            ItemKind::Lines(run) => Some(run.count),
            ItemKind::Cost(costs) | ItemKind::Call { costs, .. } => are_short(costs).then_some(1),
            ItemKind::Jump { .. } | ItemKind::Unknown(_) => Some(0),
        }
    }

    /// Its self cost of the first event.
    pub(in super::super) fn self_cost(&self) -> Option<u64> {
        match &self.kind {
            ItemKind::Lines(run) => Some(run.cost),
            ItemKind::Cost(costs) => Some(first_cost(costs)),
            ItemKind::Call { .. } | ItemKind::Jump { .. } | ItemKind::Unknown(_) => None,
        }
    }
}
