//! Parses a mangled name into a graph. Methods are named after the rules in the ABI's grammar. They return `None` if
//! the name isn't as the rule says, or exceeds a limit.

use super::graph::{FunctionNode, Graph, List, MOST_DEPTH, Node, NodeId, Qualifiers, RefQualifier};
use super::operators::{self, Place};

/// The maximum length of a mangled name in bytes. Longer ones are not parsed.
const LONGEST: usize = 64 << 10;

/// The maximum number of grammar rules that are tried for a name. No real name of up to [`LONGEST`] bytes needs as
/// many.
const MOST_TRIED: u32 = 1 << 18;

/// Parses a name that begins with `_Z` or `__Z`. The returned node is the function's name without parameters, or a
/// special name such as that of a vtable. `None` if the name can't be parsed.
pub(super) fn parse(mangled: &str) -> Option<(Graph<'_>, NodeId)> {
    let rest = mangled.strip_prefix("_Z").or_else(|| mangled.strip_prefix("__Z"))?;
    if rest.len() > LONGEST {
        return None;
    }
    let mut parser = Parser { rest, takes_arguments: true, ..Parser::default() };
    let root = parser.top_level()?;
    Some((parser.graph, root))
}

#[derive(Debug, Default)]
struct Parser<'a> {
    /// What is still to be parsed.
    rest: &'a str,
    graph: Graph<'a>,
    /// The nodes to which `S_`, `S0_`, `S1_` and so on refer.
    substitutions: Vec<NodeId>,
    /// False while the type of a conversion operator is parsed. Template arguments after that type then belong to the
    /// operator and not to the type.
    takes_arguments: bool,
    /// How deep rules are nested now.
    depth: u32,
    /// How many grammar rules were tried so far. This limits the time that demangling takes. Some are tried twice, and
    /// such attempts can be nested.
    tried: u32,
}

/// What the name of a function tells about the encoding of its type.
#[derive(Debug, Clone, Copy, Default)]
struct NameFacts {
    /// True if the name ends with template arguments. The type of such a function begins with its result type.
    ends_with_arguments: bool,
    /// True for constructors, destructors and conversion operators. Their mangled names never contain a result type,
    /// even if they end with template arguments.
    has_no_result: bool,
    /// The qualifiers of `this`, such as `const` after the parameters of a member function.
    qualifiers: Qualifiers,
    /// The `&` or `&&` after the parameters of a member function, which limits it to lvalues or rvalues.
    reference: RefQualifier,
}

impl<'a> Parser<'a> {
    fn add(&mut self, node: Node<'a>) -> NodeId {
        self.graph.nodes.push(node);
        self.graph.nodes.len() as NodeId - 1
    }

    fn text(&mut self, text: &'a str) -> NodeId {
        self.add(Node::Text(text))
    }

    fn add_list(&mut self, items: &[NodeId]) -> List {
        let start = self.graph.lists.len() as u32;
        self.graph.lists.extend(items);
        List { start, end: self.graph.lists.len() as u32 }
    }

    /// Makes a node available to back references later in the name. Returns the node.
    fn remember(&mut self, node: NodeId) -> NodeId {
        self.substitutions.push(node);
        node
    }

    /// The next letter; 0 at the end.
    fn peek(&self) -> u8 {
        self.rest.as_bytes().first().copied().unwrap_or(0)
    }

    /// The letter after the next one; 0 at the end.
    fn second(&self) -> u8 {
        self.rest.as_bytes().get(1).copied().unwrap_or(0)
    }

    /// Skips `text` if it comes next. Returns whether it did.
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Skips `text`. `None` if something else comes next.
    fn expect(&mut self, text: &str) -> Option<()> {
        self.take(text).then_some(())
    }

    /// Skips the next `len` bytes and returns them. `None` if there are fewer.
    fn skip(&mut self, len: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// Skips the digits that come next and returns them. May be empty.
    fn digits(&mut self) -> &'a str {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits
    }

    /// Parses a number: `n` if it is negative, then digits. Returns the digits only.
    fn number(&mut self) -> Option<&'a str> {
        self.take("n");
        Some(self.digits()).filter(|digits| !digits.is_empty())
    }

    /// Parses the index of something: `_` is 0, `0_` is 1, and so on.
    fn index(&mut self) -> Option<u32> {
        if self.take("_") {
            return Some(0);
        }
        let number: u32 = self.digits().parse().ok()?;
        self.expect("_")?;
        number.checked_add(1)
    }

    /// Calls `parse` one level deeper. `None` if rules are nested too deep, or if too many have been tried.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.tried += 1;
        if self.depth >= MOST_DEPTH || self.tried > MOST_TRIED {
            return None;
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses everything after `_Z`. Returns the function's name without its types, or a special name.
    fn top_level(&mut self) -> Option<NodeId> {
        if matches!(self.peek(), b'T' | b'G') {
            let root = self.special_name()?;
            return self.is_at_end().then_some(root);
        }
        // What the name tells about the function's type, whose mangled form comes next.
        let mut facts = NameFacts::default();
        let name = self.name(&mut facts)?;
        // Parameters aren't shown, so parameters that can't be parsed are accepted if they look like types.
        let looks_like_types = self.peek().is_ascii_alphanumeric();
        let types = self.function_types(&facts);
        let has_types = types.is_some() && self.is_at_end();
        (has_types || looks_like_types).then_some(name)
    }

    /// True at the end of the mangled name, or before a suffix such as `.cold`. Compilers and linkers append suffixes
    /// to the names of copies and parts of functions.
    fn is_at_end(&self) -> bool {
        matches!(self.peek(), 0 | b'.' | b'$')
    }

    /// Parses a name that is part of a larger name, such as the function around a local variable. If it is a function's
    /// name, the function's type is part of the result, unlike at the top level.
    fn encoding(&mut self) -> Option<NodeId> {
        self.deeper(|parser| {
            if matches!(parser.peek(), b'T' | b'G') {
                return parser.special_name();
            }
            let mut facts = NameFacts::default();
            let name = parser.name(&mut facts)?;
            let (result, parameters) = parser.function_types(&facts)?;
            let NameFacts { qualifiers, reference, .. } = facts;
            // Without parameter types, it is the name of a variable.
            if parameters.is_none() {
                return Some(name);
            }
            Some(parser.add(Node::Function(FunctionNode { name, parameters, result, qualifiers, reference })))
        })
    }

    /// Parses the result type, if there is one, and the parameter types. If the name has no types, because it isn't
    /// that of a function, both are `None`.
    fn function_types(&mut self, facts: &NameFacts) -> Option<(Option<NodeId>, Option<List>)> {
        // No type comes next: the whole name ends (0), a surrounding name ends (`E`), or a suffix (`.`) or `_` follows.
        if matches!(self.peek(), 0 | b'E' | b'.' | b'_') {
            return Some((None, None));
        }
        // Only functions whose names end with template arguments have a result type here, but constructors, destructors
        // and conversion operators never do.
        let has_result = facts.ends_with_arguments && !facts.has_no_result;
        let result = if has_result { Some(self.ty()?) } else { None };
        let parameters = self.parameters(|parser| matches!(parser.peek(), 0 | b'E' | b'.' | b'_'))?;
        Some((result, Some(parameters)))
    }

    /// Parses parameter types until `is_end` is true. A single `v` means that there are no parameters.
    fn parameters(&mut self, is_end: impl Fn(&Self) -> bool) -> Option<List> {
        let mut parameters = Vec::new();
        if self.take("v") && is_end(self) {
            return Some(List::default());
        }
        while !is_end(self) {
            parameters.push(self.ty()?);
        }
        Some(self.add_list(&parameters))
    }

    /// Parses the name of something that the compiler made, such as a vtable or a thunk.
    fn special_name(&mut self) -> Option<NodeId> {
        let letters = self.skip(2)?;
        let (before, inner) = match letters {
            "TV" => ("vtable for ", self.ty()?),
            "TT" => ("VTT for ", self.ty()?),
            "TI" => ("typeinfo for ", self.ty()?),
            "TS" => ("typeinfo name for ", self.ty()?),
            "TA" => ("template parameter object for ", self.template_argument()?),
            "TH" => ("TLS init function for ", self.object_name()?),
            "TW" => ("TLS wrapper function for ", self.object_name()?),
            "GV" => ("guard variable for ", self.object_name()?),
            "GR" => {
                let name = self.object_name()?;
                let number = self.sequence_number()?;
                let number = self.add(Node::Index(number));
                let before = "reference temporary #";
                return Some(self.add(Node::Joined { before, first: number, between: " for ", second: name }));
            }
            "GT" => match self.skip(1)? {
                "n" => ("non-transaction clone for ", self.encoding()?),
                _ => ("transaction clone for ", self.encoding()?),
            },
            // The number is the offset of the base class in `derived`. It isn't printed.
            "TC" => {
                let derived = self.ty()?;
                self.number()?;
                self.expect("_")?;
                let base = self.ty()?;
                let before = "construction vtable for ";
                return Some(self.add(Node::Joined { before, first: base, between: "-in-", second: derived }));
            }
            // The names of thunks contain numbers that say by how much the thunk moves `this`. They aren't printed.
            "Th" => {
                self.number()?;
                self.expect("_")?;
                ("non-virtual thunk to ", self.encoding()?)
            }
            "Tv" => {
                self.virtual_offset()?;
                ("virtual thunk to ", self.encoding()?)
            }
            "Tc" => {
                self.call_offset()?;
                self.call_offset()?;
                ("covariant return thunk to ", self.encoding()?)
            }
            _ => return None,
        };
        Some(self.add(Node::Wrapped { before, inner, after: "" }))
    }

    /// Skips the two offsets of a virtual thunk, each a number and `_`.
    fn virtual_offset(&mut self) -> Option<()> {
        self.number()?;
        self.expect("_")?;
        self.number()?;
        self.expect("_")
    }

    /// Skips the adjustment of a thunk: `h` and an offset, or `v` and two offsets.
    fn call_offset(&mut self) -> Option<()> {
        if self.take("h") {
            self.number()?;
            return self.expect("_");
        }
        self.expect("v")?;
        self.virtual_offset()
    }

    /// Parses the name of a variable or anything else but a function, which no type follows.
    fn object_name(&mut self) -> Option<NodeId> {
        self.name(&mut NameFacts::default())
    }

    /// Parses the index of a back reference, which is in base 36: `_` is 0, `0_` is 1, `A_` is 11.
    fn sequence_number(&mut self) -> Option<u32> {
        if self.take("_") {
            return Some(0);
        }
        let len = self.rest.bytes().take_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
        let number = u32::from_str_radix(self.skip(len)?, 36).ok()?;
        self.expect("_")?;
        number.checked_add(1)
    }

    /// Parses a name with its scopes and template arguments, but without parameter types.
    fn name(&mut self, facts: &mut NameFacts) -> Option<NodeId> {
        self.deeper(|parser| match parser.peek() {
            b'N' => parser.nested_name(facts),
            b'Z' => parser.local_name(facts),
            // `St` stands for `std::`. `S` before any other letter starts a back reference. Here, that can only refer
            // to a template, and the template's arguments follow.
            b'S' if parser.second() != b't' => {
                let name = parser.substitution()?;
                if parser.peek() != b'I' {
                    return None;
                }
                parser.with_arguments(name, facts)
            }
            _ => {
                let scope = if parser.take("St") { Some(parser.text("std")) } else { None };
                let mut name = parser.unqualified_name(None, facts)?;
                if let Some(scope) = scope {
                    name = parser.add(Node::Nested { scope, name });
                }
                // Back references can lead to the template alone, so it is remembered without its arguments.
                if parser.peek() == b'I' {
                    parser.remember(name);
                    name = parser.with_arguments(name, facts)?;
                }
                Some(name)
            }
        })
    }

    /// Parses the template arguments that follow a template's name, and notes in `facts` that the name ends with them.
    fn with_arguments(&mut self, name: NodeId, facts: &mut NameFacts) -> Option<NodeId> {
        let arguments = self.template_arguments()?;
        facts.ends_with_arguments = true;
        Some(self.add(Node::Template { name, arguments }))
    }

    /// Parses a name in a namespace or class: `N`, qualifiers of `this`, the parts of the name, `E`.
    fn nested_name(&mut self, facts: &mut NameFacts) -> Option<NodeId> {
        self.expect("N")?;
        // The mark of an explicit object parameter (C++23). It is not printed.
        self.take("H");
        facts.qualifiers = self.qualifiers();
        facts.reference = self.ref_qualifier();
        let mut name: Option<NodeId> = None;
        // True if the last part was made available to later back references. A part that is itself a back reference
        // isn't.
        let mut is_remembered = false;
        while !self.take("E") {
            // If another part follows the template arguments, the name doesn't end with them. `I` (more arguments) and
            // `B` (an ABI tag) don't begin a part. A `B` in this place is an error, which `unqualified_name` below
            // reports, because tags are read together with their part.
            facts.ends_with_arguments &= self.peek() == b'I' || self.peek() == b'B';
            let next = match (self.peek(), self.second()) {
                // The template arguments belong to all parts so far, which together are the template's name.
                (b'I', _) => self.with_arguments(name?, facts)?,
                (b'S', b't') if name.is_none() => {
                    self.take("St");
                    name = Some(self.text("std"));
                    continue;
                }
                (b'S', second) if name.is_none() && second != b't' => {
                    name = Some(self.substitution()?);
                    is_remembered = false;
                    continue;
                }
                (b'T', _) if name.is_none() => self.template_parameter()?,
                (b'D', b't' | b'T') if name.is_none() => self.decltype()?,
                (b'M', _) => {
                    // `M` marks a lambda in the initializer of a member. Nothing is printed for it.
                    self.take("M");
                    continue;
                }
                _ => {
                    let part = self.unqualified_name(name, facts)?;
                    match name {
                        Some(scope) => self.add(Node::Nested { scope, name: part }),
                        None => part,
                    }
                }
            };
            self.remember(next);
            is_remembered = true;
            name = Some(next);
        }
        // A nested name must have a part of its own. One that is only a back reference is malformed.
        if !is_remembered {
            return None;
        }
        // Later parts of the mangled name can refer to each part of this name, but to this name as a whole only if it
        // is a type. In that case, the caller makes it available again.
        self.substitutions.pop();
        name
    }

    /// Parses the name of something local to a function: `Z`, the function, `E`, the name. In place of the name, `s`
    /// stands for a string literal; `d` and a number come before the name of something in a default argument.
    fn local_name(&mut self, facts: &mut NameFacts) -> Option<NodeId> {
        self.expect("Z")?;
        let function = self.encoding()?;
        // The function is the scope of the name here. In a scope, c++filt prints no result type.
        if let Some(Node::Function(function)) = self.graph.nodes.get_mut(function as usize) {
            function.result = None;
        }
        self.expect("E")?;
        if self.take("s") {
            self.discriminator();
            let name = self.text("string literal");
            return Some(self.add(Node::Local { function, name }));
        }
        let name = if self.take("d") {
            let number = self.index()?.checked_add(1)?;
            let name = self.name(facts)?;
            self.add(Node::DefaultArgument { number, name })
        } else {
            self.name(facts)?
        };
        self.discriminator();
        Some(self.add(Node::Local { function, name }))
    }

    /// Skips the number that tells apart local entities of the same name, if there is one.
    fn discriminator(&mut self) {
        let before = self.rest;
        if self.take("__") {
            self.digits();
            self.take("_");
        } else if self.take("_") && self.digits().is_empty() {
            // A `_` without digits isn't a discriminator, and is left for the caller.
            self.rest = before;
        }
    }

    /// Parses the qualifiers `restrict`, `volatile` and `const`, as far as they are there.
    fn qualifiers(&mut self) -> Qualifiers {
        let is_restrict = self.take("r");
        let is_volatile = self.take("V");
        let is_const = self.take("K");
        Qualifiers { is_const, is_volatile, is_restrict }
    }

    /// Parses the `&` (`R`) or `&&` (`O`) after the parameters of a member function, if there is one.
    fn ref_qualifier(&mut self) -> RefQualifier {
        if self.take("R") {
            RefQualifier::LValue
        } else if self.take("O") {
            RefQualifier::RValue
        } else {
            RefQualifier::None
        }
    }

    /// Parses one part of a name, without template arguments. `scope` is the class that a constructor or destructor
    /// belongs to. Sets `facts.has_no_result` if the part names a function whose mangled type has no result type: a
    /// constructor, a destructor or a conversion operator.
    fn unqualified_name(&mut self, scope: Option<NodeId>, facts: &mut NameFacts) -> Option<NodeId> {
        facts.has_no_result = false;
        // `F` marks a friend, `L` a name with internal linkage. Nothing is printed for them.
        self.take("F");
        self.take("L");
        let mut name = match (self.peek(), self.second()) {
            (b'0'..=b'9', _) => self.source_name()?,
            // A type without a name. The index counts from 0, the printed number from 1.
            (b'U', b't') => {
                self.skip(2)?;
                let number = self.index()?.checked_add(1)?;
                self.add(Node::Unnamed(number))
            }
            (b'U', b'l') => self.lambda()?,
            // A structured binding, such as `auto [a, b]`.
            (b'D', b'C') => {
                self.skip(2)?;
                let mut names = Vec::new();
                while !self.take("E") {
                    names.push(self.source_name()?);
                }
                let names = self.add_list(&names);
                self.add(Node::Bindings(names))
            }
            (b'C' | b'D', _) => {
                facts.has_no_result = true;
                self.constructor(scope?)?
            }
            (b'a'..=b'z', _) => self.operator_name(facts)?,
            _ => return None,
        };
        while self.take("B") {
            let tag = self.identifier()?;
            name = self.add(Node::Tagged { name, tag });
        }
        Some(name)
    }

    fn identifier(&mut self) -> Option<&'a str> {
        let len: usize = self.digits().parse().ok()?;
        self.skip(len).filter(|name| !name.is_empty())
    }

    /// Parses an identifier: its length and its letters. Those that start with `_GLOBAL__N`, `_GLOBAL_.N` or
    /// `_GLOBAL_$N` stand for an anonymous namespace.
    fn source_name(&mut self) -> Option<NodeId> {
        let name = self.identifier()?;
        let is_anonymous = name.strip_prefix("_GLOBAL_").is_some_and(|rest| {
            matches!(rest.as_bytes().first(), Some(b'_' | b'.' | b'$')) && rest.as_bytes().get(1) == Some(&b'N')
        });
        Some(self.text(if is_anonymous { "(anonymous namespace)" } else { name }))
    }

    /// Parses a lambda: `Ul`, the parameter types, `E`, the index of the lambda among those in its function.
    fn lambda(&mut self) -> Option<NodeId> {
        self.expect("Ul")?;
        self.template_declarations()?;
        let parameters = self.parameters(|parser| parser.peek() == b'E')?;
        self.expect("E")?;
        let number = self.index()?.checked_add(1)?;
        Some(self.add(Node::Lambda { parameters, number }))
    }

    /// Skips the declarations of template parameters in a lambda or a template template argument.
    fn template_declarations(&mut self) -> Option<()> {
        while self.peek() == b'T' && matches!(self.second(), b'y' | b'n' | b't' | b'p' | b'k') {
            self.deeper(Self::template_declaration)?;
        }
        Some(())
    }

    /// Skips the declaration of one template parameter: a type (`Ty`), a value of a type (`Tn`), a type with a
    /// constraint (`Tk`), a pack (`Tp`) or a template (`Tt`).
    fn template_declaration(&mut self) -> Option<()> {
        match self.skip(2)? {
            "Ty" => Some(()),
            "Tn" => self.ty().map(|_| ()),
            "Tk" => self.object_name().map(|_| ()),
            "Tp" => self.template_declarations(),
            _ => {
                self.template_declarations()?;
                self.expect("E")
            }
        }
    }

    /// Parses a constructor (`C` and a digit) or destructor (`D` and a digit) of the class `scope`. After `CI` and a
    /// digit, there is the type of a base class from which the constructor is inherited.
    fn constructor(&mut self, scope: NodeId) -> Option<NodeId> {
        let is_destructor = self.peek() == b'D';
        let is_inherited = !is_destructor && self.second() == b'I';
        self.skip(if is_inherited { 3 } else { 2 })?;
        let scope = if is_inherited { self.ty()? } else { scope };
        let class = self.base_name(scope)?;
        Some(self.add(Node::Constructor { class, is_destructor }))
    }

    /// The name of a class's constructors: the last part of the class's own name, without template arguments. `None` if
    /// the node `class` isn't the name of a class.
    fn base_name(&mut self, mut class: NodeId) -> Option<NodeId> {
        loop {
            class = match self.graph.get(class) {
                Node::Nested { name, .. }
                | Node::Local { name, .. }
                | Node::Tagged { name, .. }
                | Node::Template { name, .. } => name,
                Node::Text(text) => return Some(self.text(text.rsplit("::").next()?)),
                Node::Lambda { .. } | Node::Unnamed(_) | Node::TemplateParameter(_) => return Some(class),
                _ => return None,
            };
        }
    }

    /// Parses the name of an operator function, including conversions and user-defined literals.
    fn operator_name(&mut self, facts: &mut NameFacts) -> Option<NodeId> {
        let letters = self.skip(2)?;
        if letters == "cv" {
            // An `I` after the type starts the template arguments of the operator, not of the type.
            let outer = std::mem::replace(&mut self.takes_arguments, false);
            let ty = self.ty();
            self.takes_arguments = outer;
            let ty = ty?;
            facts.has_no_result = true;
            return Some(self.add(Node::Conversion(ty)));
        }
        if letters == "li" {
            let name = self.identifier()?;
            return Some(self.add(Node::Literal(name)));
        }
        // `v` and a digit start the name of an operator that only this compiler has. The digit is the number of its
        // operands.
        if letters.starts_with('v') && letters.as_bytes()[1].is_ascii_digit() {
            let name = self.identifier()?;
            return Some(self.add(Node::Operator(name)));
        }
        let (text, _) = operators::find(letters)?;
        Some(self.add(Node::Operator(text)))
    }

    /// Parses a back reference (`S_`, `S0_`, …) or one of the ABI's abbreviations for classes of the standard library
    /// (`Ss`, `Sa`, …), with the ABI tags that may follow an abbreviation. `None` for `St`, which stands for the scope
    /// `std::` and not for a class; callers must handle it before.
    fn substitution(&mut self) -> Option<NodeId> {
        self.expect("S")?;
        let text = match self.peek() {
            b'a' => "std::allocator",
            b'b' => "std::basic_string",
            b's' => "std::string",
            b'i' => "std::istream",
            b'o' => "std::ostream",
            b'd' => "std::iostream",
            _ => {
                let number = self.sequence_number()? as usize;
                return self.substitutions.get(number).copied();
            }
        };
        self.skip(1)?;
        // `Ss`, `Si`, `So` and `Sd` stand for a class with its template arguments. The other abbreviations stand for a
        // template without them.
        let is_whole = matches!(text, "std::string" | "std::istream" | "std::ostream" | "std::iostream");
        let is_before_constructor = matches!(self.peek(), b'C' | b'D');
        let mut name = if is_whole && is_before_constructor {
            // Constructors and destructors are named after the class template, even if the abbreviation stands for an
            // alias such as `std::string`.
            let class = match text {
                "std::string" => "std::basic_string",
                "std::istream" => "std::basic_istream",
                "std::ostream" => "std::basic_ostream",
                _ => "std::basic_iostream",
            };
            self.abbreviated(class)
        } else {
            self.text(text)
        };
        if self.peek() == b'B' {
            while self.take("B") {
                let tag = self.identifier()?;
                name = self.add(Node::Tagged { name, tag });
            }
            self.remember(name);
        }
        Some(name)
    }

    /// The node for a class of the standard library with all its template arguments. `class` is its name without them,
    /// such as `std::basic_string`.
    fn abbreviated(&mut self, class: &'a str) -> NodeId {
        let name = self.text(class);
        let mut arguments = vec!["char", "std::char_traits<char>"];
        if class == "std::basic_string" {
            arguments.push("std::allocator<char>");
        }
        let arguments: Vec<NodeId> = arguments.into_iter().map(|argument| self.text(argument)).collect();
        let arguments = self.add_list(&arguments);
        self.add(Node::Template { name, arguments })
    }

    /// Parses a template parameter: `T` and its index. For a parameter of a template inside another template, `L` and
    /// the level of nesting come before the index. The level isn't printed.
    fn template_parameter(&mut self) -> Option<NodeId> {
        self.expect("T")?;
        if self.take("L") {
            self.index()?;
        }
        let number = self.index()?;
        Some(self.add(Node::TemplateParameter(number)))
    }

    /// Parses a list of template arguments: `I`, the arguments, `E`.
    fn template_arguments(&mut self) -> Option<List> {
        self.expect("I")?;
        // Inside the angle brackets, template arguments after a type belong to that type, even if the brackets are part
        // of the type of a conversion operator.
        let outer = std::mem::replace(&mut self.takes_arguments, true);
        let mut arguments = Vec::new();
        while !self.take("E") {
            if self.take("Q") {
                // After `Q` comes a constraint on the argument, which isn't printed.
                self.expression()?;
                continue;
            }
            arguments.push(self.template_argument()?);
        }
        self.takes_arguments = outer;
        Some(self.add_list(&arguments))
    }

    /// Parses a template argument: an expression (`X`, the expression, `E`), a literal (`L`), a pack (`J` or `I`, its
    /// arguments, `E`) or a type. The declaration of a template parameter (`Ty`, `Tn` and so on) may precede it.
    fn template_argument(&mut self) -> Option<NodeId> {
        match self.peek() {
            b'X' => {
                self.take("X");
                let expression = self.expression()?;
                self.expect("E")?;
                Some(expression)
            }
            b'L' => self.literal(),
            b'J' | b'I' => {
                self.skip(1)?;
                let mut items = Vec::new();
                while !self.take("E") {
                    items.push(self.deeper(Self::template_argument)?);
                }
                let items = self.add_list(&items);
                Some(self.add(Node::Pack(items)))
            }
            b'T' if matches!(self.second(), b'y' | b'n' | b't' | b'p' | b'k') => {
                self.template_declaration()?;
                self.deeper(Self::template_argument)
            }
            _ => self.ty(),
        }
    }

    fn ty(&mut self) -> Option<NodeId> {
        self.deeper(Self::ty_inside)
    }

    /// Parses a type, and remembers it for back references unless it is a builtin type.
    fn ty_inside(&mut self) -> Option<NodeId> {
        if let Some(text) = builtin(self.peek()) {
            self.skip(1)?;
            return Some(self.text(text));
        }
        let node = match (self.peek(), self.second()) {
            // `restrict`, `volatile` and `const`. Before a function type, they are qualifiers of `this`.
            (b'r' | b'V' | b'K', _) => {
                let qualifiers = self.qualifiers();
                if self.peek() == b'F' || self.peek() == b'D' && matches!(self.second(), b'o' | b'O' | b'w' | b'x') {
                    self.function_type(qualifiers)?
                } else {
                    let inner = self.ty()?;
                    self.add(Node::Qualified { inner, qualifiers })
                }
            }
            (b'F', _) | (b'D', b'o' | b'O' | b'w' | b'x') => self.function_type(Qualifiers::default())?,
            (b'P', _) => {
                self.take("P");
                let inner = self.ty()?;
                self.add(Node::Pointer(inner))
            }
            (b'R', _) => {
                self.take("R");
                let inner = self.ty()?;
                self.add(Node::LValueReference(inner))
            }
            (b'O', _) => {
                self.take("O");
                let inner = self.ty()?;
                self.add(Node::RValueReference(inner))
            }
            (b'C' | b'G', _) => {
                let suffix = if self.peek() == b'C' { " _Complex" } else { " _Imaginary" };
                self.skip(1)?;
                let inner = self.ty()?;
                self.add(Node::Suffixed { inner, suffix })
            }
            // A lambda, or a type without a name.
            (b'U', b'l' | b't') => self.name(&mut NameFacts::default())?,
            // A qualifier that only this compiler has. It may have template arguments.
            (b'U', _) => {
                self.take("U");
                let mut qualifier = self.source_name()?;
                if self.peek() == b'I' {
                    let arguments = self.template_arguments()?;
                    qualifier = self.add(Node::Template { name: qualifier, arguments });
                }
                let inner = self.ty()?;
                self.add(Node::VendorQualified { inner, qualifier })
            }
            (b'A', _) => self.array_type()?,
            (b'M', _) => {
                self.take("M");
                let class = self.ty()?;
                let member = self.ty()?;
                self.add(Node::MemberPointer { class, member })
            }
            // A class, union or enumeration whose kind is spelled out.
            (b'T', b's' | b'u' | b'e') => {
                let before = match self.skip(2)? {
                    "Ts" => "struct ",
                    "Tu" => "union ",
                    _ => "enum ",
                };
                let inner = self.object_name()?;
                self.add(Node::Wrapped { before, inner, after: "" })
            }
            (b'T', _) => {
                let parameter = self.template_parameter()?;
                // The parameter may stand for a template, whose arguments then follow.
                if self.peek() != b'I' || !self.takes_arguments {
                    return Some(self.remember(parameter));
                }
                self.remember(parameter);
                let arguments = self.template_arguments()?;
                self.add(Node::Template { name: parameter, arguments })
            }
            (b'S', second) if second != b't' => {
                let name = self.substitution()?;
                if self.peek() != b'I' || !self.takes_arguments {
                    // This name isn't made available to back references, because it is one itself, or one of the ABI's
                    // abbreviations.
                    return Some(name);
                }
                let arguments = self.template_arguments()?;
                self.add(Node::Template { name, arguments })
            }
            (b'D', b't' | b'T') => self.decltype()?,
            (b'D', b'p') => {
                self.skip(2)?;
                let pattern = self.ty()?;
                self.add(Node::Expansion(pattern))
            }
            (b'D', b'v') => self.vector_type()?,
            (b'D', _) => return self.long_builtin(),
            // A builtin type that only this compiler has.
            (b'u', _) => {
                self.take("u");
                let mut name = self.source_name()?;
                if self.peek() == b'I' {
                    let arguments = self.template_arguments()?;
                    name = self.add(Node::Template { name, arguments });
                }
                name
            }
            _ => self.name(&mut NameFacts::default())?,
        };
        Some(self.remember(node))
    }

    /// Parses a builtin type whose code has several letters. Such types aren't remembered.
    fn long_builtin(&mut self) -> Option<NodeId> {
        let text = match self.skip(2)? {
            "Da" => "auto",
            "Dc" => "decltype(auto)",
            "Dd" => "decimal64",
            "De" => "decimal128",
            "Df" => "decimal32",
            "Dh" => "half",
            "Di" => "char32_t",
            "Ds" => "char16_t",
            "Du" => "char8_t",
            "Dn" => "decltype(nullptr)",
            // `DF16_` is `_Float16`, `DF32x` is printed without its `x`, and `DF16b` is `std::bfloat16_t`.
            "DF" => {
                let digits = self.digits();
                let has_x = self.take("x");
                if self.take("b") {
                    return Some(self.text("std::bfloat16_t"));
                }
                let has_end = self.take("_");
                if !has_end && !has_x {
                    return None;
                }
                let name = self.text("_Float");
                let bits = self.text(digits);
                let (before, between) = ("", "");
                return Some(self.add(Node::Joined { before, first: name, between, second: bits }));
            }
            _ => return None,
        };
        Some(self.text(text))
    }

    /// Parses the type of a function: its exceptions, `F`, the result, the parameters, `E`. `qualifiers` are the
    /// qualifiers of `this`, which come before the type in the mangled name and have been parsed already.
    fn function_type(&mut self, qualifiers: Qualifiers) -> Option<NodeId> {
        let mut suffix = "";
        if self.take("Do") {
            suffix = " noexcept";
        } else if self.take("DO") {
            // `noexcept(…)`: the expression isn't printed.
            self.expression()?;
            self.expect("E")?;
            suffix = " noexcept";
        } else if self.take("Dw") {
            // `throw(…)`: nothing is printed for it.
            while !self.take("E") {
                self.ty()?;
            }
        }
        // `Dx` marks a function for transactions, `Y` an `extern "C"` function. Nothing is printed for them.
        self.take("Dx");
        self.expect("F")?;
        self.take("Y");
        let result = self.ty()?;
        // An `R` or `O` before the `E` is a qualifier of `this`, not the start of a parameter type.
        let is_end = |parser: &Self| {
            let is_reference = matches!(parser.peek(), b'R' | b'O') && parser.second() == b'E';
            parser.peek() == b'E' || is_reference
        };
        let parameters = self.parameters(is_end)?;
        let reference = self.ref_qualifier();
        self.expect("E")?;
        Some(self.add(Node::FunctionType { result, parameters, qualifiers, reference, suffix }))
    }

    /// Parses an array type: `A`, the number of elements (a number, an expression or nothing), `_`, their type.
    fn array_type(&mut self) -> Option<NodeId> {
        self.expect("A")?;
        let size = match self.peek() {
            b'_' => None,
            b'0'..=b'9' => {
                let digits = self.digits();
                Some(self.text(digits))
            }
            _ => Some(self.expression()?),
        };
        self.expect("_")?;
        let element = self.ty()?;
        Some(self.add(Node::Array { element, size }))
    }

    /// Parses GCC's vector type: `Dv`, the number of elements or `_` and an expression, `_`, their type.
    fn vector_type(&mut self) -> Option<NodeId> {
        self.expect("Dv")?;
        let size = if self.take("_") {
            self.expression()?
        } else {
            let digits = self.number()?;
            self.text(digits)
        };
        self.expect("_")?;
        let element = self.ty()?;
        Some(self.add(Node::Vector { element, size }))
    }

    fn decltype(&mut self) -> Option<NodeId> {
        self.skip(2)?;
        let inner = self.expression()?;
        self.expect("E")?;
        Some(self.add(Node::Wrapped { before: "decltype (", inner, after: ")" }))
    }

    /// Parses a literal: `L`, a type and digits, `E`. Instead of type and digits, it can have the mangled name of a
    /// function or variable.
    fn literal(&mut self) -> Option<NodeId> {
        self.expect("L")?;
        // Old versions of GCC left out the `_`.
        if self.take("_Z") || self.take("Z") {
            let encoding = self.encoding()?;
            self.expect("E")?;
            return Some(encoding);
        }
        let ty = self.ty()?;
        let is_negative = self.take("n");
        let len = self.rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() && *byte != b'E').count();
        let digits = self.skip(len)?;
        self.expect("E")?;
        // A literal without digits is `nullptr` (`LDnE`). c++filt prints its type.
        if digits.is_empty() {
            return Some(ty);
        }
        Some(self.add(Node::Number { ty, digits, is_negative }))
    }

    fn expression(&mut self) -> Option<NodeId> {
        self.deeper(Self::expression_inside)
    }

    fn expressions(&mut self) -> Option<List> {
        let mut items = Vec::new();
        while !self.take("E") {
            items.push(self.expression()?);
        }
        Some(self.add_list(&items))
    }

    /// Parses an expression in a template argument or a type. Most begin with a two-letter code.
    fn expression_inside(&mut self) -> Option<NodeId> {
        match self.peek() {
            b'L' => return self.literal(),
            b'T' => return self.template_parameter(),
            b'0'..=b'9' => return self.simple_name(),
            // `fp`, or `fL` and a digit, starts the number of a function's parameter.
            b'f' if self.second() == b'p' || self.second() == b'L' && self.rest.as_bytes().get(2)?.is_ascii_digit() => {
                return self.function_parameter();
            }
            // All other codes with an `f` are those of fold expressions.
            b'f' => return self.fold(),
            // A builtin function that only this compiler has, and its arguments.
            b'u' => {
                self.take("u");
                let callee = self.source_name()?;
                let mut arguments = Vec::new();
                while !self.take("E") {
                    arguments.push(self.template_argument()?);
                }
                let arguments = self.add_list(&arguments);
                return Some(self.add(Node::Call { callee, arguments }));
            }
            _ => {}
        }
        // The codes are those of `<expression>` in the ABI.
        let letters = self.skip(2)?;
        let wrapped = |before: &'static str, inner| Node::Wrapped { before, inner, after: ")" };
        let node = match letters {
            "gs" => {
                let inner = self.expression()?;
                Node::Wrapped { before: "::", inner, after: "" }
            }
            "sr" => return self.unresolved_name(),
            "on" => {
                let name = self.operator_name(&mut NameFacts::default())?;
                return self.with_optional_arguments(name);
            }
            "dn" => {
                let class = self.ty()?;
                Node::Wrapped { before: "~", inner: class, after: "" }
            }
            "sp" => Node::Expansion(self.expression()?),
            "sZ" => {
                let pack = if self.peek() == b'T' { self.template_parameter()? } else { self.function_parameter()? };
                Node::PackLength(pack)
            }
            "sP" => {
                let mut items = Vec::new();
                while !self.take("E") {
                    items.push(self.template_argument()?);
                }
                let items = self.add_list(&items);
                let pack = self.add(Node::Pack(items));
                Node::PackLength(pack)
            }
            "st" => wrapped("sizeof (", self.ty()?),
            "sz" => wrapped("sizeof (", self.expression()?),
            "at" => wrapped("alignof (", self.ty()?),
            "az" => wrapped("alignof (", self.expression()?),
            "ti" => wrapped("typeid (", self.ty()?),
            "te" => wrapped("typeid (", self.expression()?),
            "nx" => wrapped("noexcept(", self.expression()?),
            "tw" => Node::Unary { operator: "throw ", operand: self.expression()?, is_postfix: false },
            "tr" => Node::Text("throw"),
            "cl" => {
                let callee = self.expression()?;
                Node::Call { callee, arguments: self.expressions()? }
            }
            "cv" => {
                // Template arguments after the type belong to the type, even within the type of a conversion operator.
                let outer = std::mem::replace(&mut self.takes_arguments, true);
                let ty = self.ty();
                self.takes_arguments = outer;
                let ty = ty?;
                let arguments = if self.take("_") {
                    self.expressions()?
                } else {
                    let operand = self.expression()?;
                    self.add_list(&[operand])
                };
                Node::Cast { ty, arguments }
            }
            "tl" => {
                let ty = Some(self.ty()?);
                Node::Braced { ty, items: self.expressions()? }
            }
            "il" => Node::Braced { ty: None, items: self.expressions()? },
            "dc" | "sc" | "cc" | "rc" => {
                let name = match letters {
                    "dc" => "dynamic_cast",
                    "sc" => "static_cast",
                    "cc" => "const_cast",
                    _ => "reinterpret_cast",
                };
                let ty = self.ty()?;
                Node::NamedCast { name, ty, operand: self.expression()? }
            }
            "qu" => {
                let condition = self.expression()?;
                let then = self.expression()?;
                Node::Conditional { condition, then, otherwise: self.expression()? }
            }
            "ix" => {
                let first = self.expression()?;
                let second = self.expression()?;
                let second = self.add(Node::Wrapped { before: "", inner: second, after: "]" });
                Node::Joined { before: "", first, between: "[", second }
            }
            "nw" | "na" => self.new_expression(if letters == "nw" { "new" } else { "new[]" })?,
            _ => {
                let (operator, place) = operators::find(letters)?;
                match place {
                    Place::Before => Node::Unary { operator, operand: self.expression()?, is_postfix: false },
                    Place::BeforeOrAfter => {
                        let is_postfix = !self.take("_");
                        Node::Unary { operator, operand: self.expression()?, is_postfix }
                    }
                    Place::Between => {
                        let left = self.expression()?;
                        Node::Binary { operator, left, right: self.expression()? }
                    }
                    Place::Name => return None,
                }
            }
        };
        Some(self.add(node))
    }

    /// Parses an expression with `new` or `new[]` (`text`), whose code has been skipped already. It has the arguments
    /// of `operator new`, `_`, the type, and the arguments of the constructor (`pi…E`) or only `E`.
    fn new_expression(&mut self, text: &'static str) -> Option<Node<'a>> {
        let mut placement = Vec::new();
        while !self.take("_") {
            placement.push(self.expression()?);
        }
        let placement = self.add_list(&placement);
        let ty = self.ty()?;
        let arguments = if self.take("E") {
            None
        } else {
            self.expect("pi")?;
            Some(self.expressions()?)
        };
        Some(Node::New { text, placement, ty, arguments })
    }

    fn simple_name(&mut self) -> Option<NodeId> {
        let name = self.source_name()?;
        self.with_optional_arguments(name)
    }

    fn with_optional_arguments(&mut self, name: NodeId) -> Option<NodeId> {
        if self.peek() != b'I' {
            return Some(name);
        }
        let arguments = self.template_arguments()?;
        Some(self.add(Node::Template { name, arguments }))
    }

    /// Parses a member of a type that depends on template arguments. According to the ABI, a list of the type's parts
    /// comes first, which ends with `E`. GCC writes the mangled type instead, which can be mistaken for a list: in
    /// GCC's form, two names without template arguments are a type and its member, not two parts of a type.
    fn unresolved_name(&mut self) -> Option<NodeId> {
        // Template arguments after the scope belong to the scope, even within the type of a conversion operator.
        let outer = std::mem::replace(&mut self.takes_arguments, true);
        let scope = self.scope_of_parts().or_else(|| self.ty());
        self.takes_arguments = outer;
        let scope = scope?;
        let name = match (self.peek(), self.second()) {
            (b'0'..=b'9', _) => self.source_name()?,
            (b'o', b'n') => {
                self.skip(2)?;
                self.operator_name(&mut NameFacts::default())?
            }
            (b'd', b'n') => {
                self.skip(2)?;
                let class = self.ty()?;
                self.add(Node::Wrapped { before: "~", inner: class, after: "" })
            }
            _ => self.operator_name(&mut NameFacts::default())?,
        };
        let name = self.with_optional_arguments(name)?;
        Some(self.add(Node::Nested { scope, name }))
    }

    /// Parses a list of scope parts. If there is none, returns `None`, and the parser is where it was before.
    fn scope_of_parts(&mut self) -> Option<NodeId> {
        let (rest, substitutions) = (self.rest, self.substitutions.len());
        let scope = self.parts_of_scope();
        if scope.is_none() {
            self.rest = rest;
            self.substitutions.truncate(substitutions);
        }
        scope
    }

    /// Parses a list of scope parts and the `E` that ends it. `None` if what comes next isn't such a list; the caller
    /// then goes back.
    fn parts_of_scope(&mut self) -> Option<NodeId> {
        let mut scope = None;
        if self.take("N") {
            scope = Some(self.ty()?);
        }
        let (mut has_arguments, mut count) = (false, 0);
        while self.peek().is_ascii_digit() {
            let name = self.source_name()?;
            has_arguments = self.peek() == b'I';
            count += 1;
            let part = self.with_optional_arguments(name)?;
            scope = Some(match scope {
                Some(scope) => self.add(Node::Nested { scope, name: part }),
                None => part,
            });
        }
        // The parts are a list as in the ABI only if an `E` ends them and the name of the member follows, which is an
        // identifier or an operator. Several parts must also end with template arguments; otherwise they are GCC's form
        // (see `unresolved_name`).
        let may_be_list = has_arguments || count == 1;
        if may_be_list && self.take("E") && (self.peek().is_ascii_digit() || self.rest.starts_with("on")) {
            scope
        } else {
            None
        }
    }

    /// Parses a reference to a parameter of the function (`fp_`) or of one around it (`fL0p_`), or to `this` (`fpT`).
    fn function_parameter(&mut self) -> Option<NodeId> {
        if self.take("fL") {
            self.digits();
            self.expect("p")?;
        } else {
            self.expect("fp")?;
        }
        if self.take("T") {
            return Some(self.text("this"));
        }
        self.qualifiers();
        let number = self.index()?.checked_add(1)?;
        Some(self.add(Node::Parameter(number)))
    }

    /// Parses a fold expression: its form (`fl`, `fr`, `fL` or `fR`), the operator, and one or two operands. `l` folds
    /// from the left: `(... + pack)`. A capital letter means that there is a start value: `(start + ... + pack)`.
    fn fold(&mut self) -> Option<NodeId> {
        let kind = self.skip(2)?;
        let letters = self.skip(2)?;
        let (operator, _) = operators::find(letters)?;
        let first = self.expression()?;
        let (pack, start, is_left) = match kind {
            "fl" => (first, None, true),
            "fr" => (first, None, false),
            "fL" => (self.expression()?, Some(first), true),
            "fR" => (first, Some(self.expression()?), false),
            _ => return None,
        };
        Some(self.add(Node::Fold { operator, pack, start, is_left }))
    }
}

/// The builtin type for a one-letter code.
fn builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    })
}
