//! Decodes the block of one function (`fn=`). Relative positions become absolute, and every call names its callee's
//! object and file. [`BlockContext`] tracks the statements that stay in effect from one line to the next.

use super::cost_lines::{CachedRange, CostLines, FindRange, are_short};
use super::names::{IdSpace, NameField, NameRef, name_field};
use super::numbers::{add_costs, first_cost};
use super::positions::{Columns, Position, PositionDecoder};
use super::statements::{Keyword, Statement, lines};
use rustc_hash::FxHashMap;

/// What is in effect at a line because of earlier lines: object, files and position columns.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct BlockContext<'a> {
    /// The last `ob=` (object).
    pub(in super::super) ob: Option<NameRef<'a>>,
    /// The last `fl=` (file of the function).
    pub(in super::super) fl: Option<NameRef<'a>>,
    /// The last `fi=` or `fe=` since the last `fl=`; `None` if there was none. Some readers assume that the next
    /// function is in this file.
    pub(in super::super) open_file: Option<NameRef<'a>>,
    /// The position columns of cost lines, as the last `positions:` line declares them.
    pub(in super::super) columns: Columns,
}

impl<'a> BlockContext<'a> {
    /// Updates what is in effect, after a line was read.
    pub(in super::super) fn apply(&mut self, line: Statement<'a>) {
        match line {
            Statement::Spec(Keyword::Ob, value) => self.ob = Some(name_field(value).into()),
            Statement::Spec(Keyword::Fl, value) => {
                self.fl = Some(name_field(value).into());
                self.open_file = None;
            }
            Statement::Spec(Keyword::Fi | Keyword::Fe, value) => self.open_file = Some(name_field(value).into()),
            Statement::Header(b"positions", value) => self.columns = Columns::parse(value).unwrap_or_default(),
            _ => {}
        }
    }
}

/// A function's block: from its `fn=` line up to the statements of the next function.
#[derive(Debug)]
pub(in super::super) struct FunctionBlock<'a> {
    /// The function's name, after `fn=`.
    pub(in super::super) function: NameField<'a>,
    /// The cost lines, calls, jumps and unknown lines of the block, in file order.
    pub(in super::super) items: Vec<BlockItem<'a>>,
    /// The IDs of objects and files that this block defines, in file order: (ID namespace, ID, name).
    pub(in super::super) definitions: Vec<(IdSpace, u32, &'a [u8])>,
    /// The IDs of functions that this block defines, and their names.
    pub(in super::super) functions: FxHashMap<u32, &'a [u8]>,
    /// True if some positions are relative.
    pub(in super::super) compressed: bool,
    /// The last `fi=` or `fe=` in the block; `None` if it has none.
    pub(in super::super) open_file: Option<NameRef<'a>>,
    /// Length of the block's text in bytes.
    pub(in super::super) len: usize,
}

/// An element of a block: a run of cost lines, a cost line, a call, a jump, or an unknown line.
#[derive(Debug)]
pub(in super::super) struct BlockItem<'a> {
    /// Position of the (first) line; `None` for unknown lines, which belong to the function as a whole.
    pub(in super::super) position: Option<Position>,
    /// The source file that `fl=`, `fi=` or `fe=` has set for this line; `None` if none has.
    pub(in super::super) file: Option<NameRef<'a>>,
    pub(in super::super) kind: ItemKind<'a>,
}

/// What kind of element a [`BlockItem`] is.
#[derive(Debug)]
pub(in super::super) enum ItemKind<'a> {
    /// Consecutive lines of self cost that can be copied unchanged.
    Lines(CostLines<'a>),
    /// A line of self cost that must be encoded again. Holds the text of its costs.
    Cost(&'a [u8]),
    /// A call and the text of its inclusive costs.
    Call { callee: Callee<'a>, count: &'a [u8], target: Position, costs: &'a [u8] },
    /// A `jump=` or `jcnd=` line. `counts` is the text before its target; `file` and `function` are from `jfi=` and
    /// `jfn=` lines before it.
    Jump {
        conditional: bool,
        counts: &'a [u8],
        target: Position,
        file: Option<NameRef<'a>>,
        function: Option<NameField<'a>>,
    },
    /// A line that is not understood; it is copied unchanged.
    Unknown(&'a [u8]),
}

/// A called function. As in KCachegrind, it has the caller's object if `cob=` is missing, and the caller's file if
/// `cfi=` is missing.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Callee<'a> {
    pub(in super::super) ob: Option<NameRef<'a>>,
    /// The source file of the callee.
    pub(in super::super) file: Option<NameRef<'a>>,
    pub(in super::super) function: NameField<'a>,
}

/// The collections of a decoded block, whose allocations the next block reuses. Allocating them for each block would
/// take longer than filling them.
#[derive(Debug, Default)]
pub(in super::super) struct BlockMemory<'a> {
    items: Vec<BlockItem<'a>>,
    definitions: Vec<(IdSpace, u32, &'a [u8])>,
    functions: FxHashMap<u32, &'a [u8]>,
}

impl<'a> FunctionBlock<'a> {
    /// Decodes the block at the start of `text`. `context` holds the statements in effect before it. Consecutive cost
    /// lines become one item if `find_range` returns the same range for their addresses. Returns `None` if the block is
    /// malformed; it should then be copied unchanged.
    pub(in super::super) fn parse(
        text: &'a [u8],
        context: BlockContext<'a>,
        every_line_moves: bool,
        find_range: &mut FindRange<'_>,
        memory: BlockMemory<'a>,
    ) -> Option<Self> {
        let mut rest = text;
        let Statement::Spec(Keyword::Fn, name) = Statement::parse(next_line(&mut rest)?) else { return None };
        let mut parser = BlockParser::new(name_field(name), context, every_line_moves, memory);
        let mut ranges = CachedRange::new(find_range);
        while let Some(&first) = rest.first() {
            if matches!(first, b'0'..=b'9' | b'+' | b'-' | b'*')
                && let Some((run, len)) = CostLines::read(rest, &mut parser.decoder, &mut ranges)
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
                    parser.read_site(key, value, next_line(&mut rest)?)?;
                }
                Statement::Spec(key, value) => parser.read_name(key, value, text)?,
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

    /// Empties the block's collections and returns them for reuse by the next block.
    pub(in super::super) fn into_memory(self) -> BlockMemory<'a> {
        let Self { mut items, mut definitions, mut functions, .. } = self;
        items.clear();
        definitions.clear();
        functions.clear();
        BlockMemory { items, definitions, functions }
    }
}

/// Removes the first line, and returns it without its line feed.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (_, line) = lines(rest).next()?;
    *rest = rest.get(line.len() + 1..).unwrap_or_default();
    Some(line)
}

struct BlockParser<'a> {
    block: FunctionBlock<'a>,
    decoder: PositionDecoder,
    context: BlockContext<'a>,
    /// The source file of the next lines.
    file: Option<NameRef<'a>>,
    /// The `cob=`, `cfi=`, `cfn=`, `jfi=` and `jfn=` lines since the last call or jump. They describe the target of the
    /// next one.
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

    /// Reads a statement whose value is a name, such as `fi=` or `cfn=`. `text` is the whole line. Returns `None` if
    /// the keyword can't occur within a block.
    fn read_name(&mut self, key: Keyword, value: &'a [u8], text: &'a [u8]) -> Option<()> {
        let Some(space) = key.space().filter(|_| key != Keyword::Frfn) else {
            self.push(None, ItemKind::Unknown(text));
            return Some(());
        };
        let field = name_field(value);
        self.define(space, field);
        match key {
            Keyword::Fi | Keyword::Fe => {
                self.file = Some(field.into());
                self.block.open_file = self.file;
            }
            Keyword::Cob => self.cob = Some(field.into()),
            Keyword::Cfi => self.cfi = Some(field.into()),
            Keyword::Cfn => self.cfn = Some(field),
            Keyword::Jfi => self.jfi = Some(field.into()),
            Keyword::Jfn => self.jfn = Some(field),
            // `ob=`, `fl=` and `fn=` begin the next function, so the block has already ended.
            _ => return None,
        }
        Some(())
    }

    /// Reads `calls=`, `jump=` or `jcnd=`, and the cost line that must follow.
    fn read_site(&mut self, key: Keyword, value: &'a [u8], next: &'a [u8]) -> Option<()> {
        let value = value.trim_ascii();
        let mut counts_end = value.iter().position(u8::is_ascii_whitespace)?;
        // The manual writes `jcnd=executed followed target`, valgrind writes `jcnd=followed/executed target`.
        if key == Keyword::Jcnd && !value[..counts_end].contains(&b'/') {
            let second = counts_end + value[counts_end..].iter().position(|byte| !byte.is_ascii_whitespace())?;
            counts_end = second + value[second..].iter().position(u8::is_ascii_whitespace)?;
        }
        let (counts, target) = value.split_at(counts_end);
        let (target, _) = self.decoder.peek(target)?;
        let Statement::Cost(next) = Statement::parse(next) else { return None };
        let (position, costs) = self.decoder.site(next)?;
        let kind = if key == Keyword::Calls {
            let callee = Callee {
                function: self.cfn.take()?,
                ob: self.cob.take().or(self.context.ob),
                file: self.cfi.take().or(self.file),
            };
            ItemKind::Call { callee, count: counts, target, costs }
        } else {
            let (file, function) = (self.jfi.take(), self.jfn.take());
            ItemKind::Jump { conditional: key == Keyword::Jcnd, counts, target, file, function }
        };
        self.push(Some(position), kind);
        Some(())
    }
}

impl BlockItem<'_> {
    /// Adds the item's costs to `sums`, which has one element per event. For a call, these are its inclusive costs.
    /// Returns `None` if a cost isn't a number or a sum overflows.
    pub(in super::super) fn add_costs(&self, sums: &mut Vec<u64>) -> Option<()> {
        match &self.kind {
            ItemKind::Lines(run) => run.each().try_for_each(|(_, costs)| add_costs(costs, sums)),
            ItemKind::Cost(costs) | ItemKind::Call { costs, .. } => add_costs(costs, sums),
            ItemKind::Jump { .. } | ItemKind::Unknown(_) => Some(()),
        }
    }

    /// The number of cost lines in this item, if all their costs are short decimal numbers (`are_short`). Otherwise
    /// `None`.
    pub(in super::super) fn short_costs(&self) -> Option<usize> {
        match &self.kind {
            ItemKind::Lines(run) => Some(run.count),
            ItemKind::Cost(costs) | ItemKind::Call { costs, .. } => are_short(costs).then_some(1),
            ItemKind::Jump { .. } | ItemKind::Unknown(_) => Some(0),
        }
    }

    /// The item's self cost in the first event; `None` for calls, jumps and unknown lines, which have no self cost.
    pub(in super::super) fn self_cost(&self) -> Option<u64> {
        match &self.kind {
            ItemKind::Lines(run) => Some(run.cost),
            ItemKind::Cost(costs) => Some(first_cost(costs)),
            ItemKind::Call { .. } | ItemKind::Jump { .. } | ItemKind::Unknown(_) => None,
        }
    }
}
