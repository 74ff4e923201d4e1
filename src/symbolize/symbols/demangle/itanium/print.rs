//! Prints a graph as text, in c++filt's spelling.
//!
//! C++ types surround what they apply to: in `void (*)(int)`, the result comes before the `*` and the parameters after
//! it. Each node therefore has a left and a right part; for most nodes the right part is empty.

use super::graph::{FunctionNode, Graph, List, MOST_DEPTH, Node, NodeId, Qualifiers, RefQualifier};

/// The maximum length of a demangled name in bytes. No real name is longer.
const LONGEST: usize = 256 << 10;

/// The maximum number of nodes that are printed for a name. No text of up to [`LONGEST`] bytes needs as many.
const MOST_NODES: u32 = 1 << 20;

/// The text of a node. `None` if it would be too long, or if the graph is nested too deep.
pub(super) fn print(graph: &Graph<'_>, root: NodeId) -> Option<String> {
    let mut printer = Printer {
        graph,
        out: String::new(),
        scopes: Vec::new(),
        scope: None,
        pack_index: None,
        lambdas: 0,
        depth: 0,
        nodes_left: MOST_NODES,
    };
    printer.with_scope_of(root, |printer| printer.all(root))?;
    Some(printer.out)
}

struct Printer<'g, 'a> {
    graph: &'g Graph<'a>,
    out: String,
    /// For each function that is being printed: its template arguments, and the scope around it.
    scopes: Vec<(List, Scope)>,
    /// The scope of what is being printed now.
    scope: Scope,
    /// The number of lambdas, one inside the other, whose parameter lists are being printed.
    lambdas: u32,
    /// The index of the pack element that is being printed; `None` outside of pack expansions.
    pack_index: Option<usize>,
    /// The current depth of nested nodes.
    depth: u32,
    /// How many more nodes may be printed; see [`MOST_NODES`].
    nodes_left: u32,
}

/// Tells to which template arguments template parameters refer: an index of [`Printer::scopes`]. `None` outside of all
/// templates.
type Scope = Option<usize>;

/// `None` if printing must stop, because the text is too long or the graph is nested too deep.
type Printed = Option<()>;

impl<'a> Printer<'_, 'a> {
    fn put(&mut self, text: &str) -> Printed {
        self.out.push_str(text);
        (self.out.len() <= LONGEST).then_some(())
    }

    fn ends_with(&self, last: char) -> bool {
        self.out.ends_with(last)
    }

    /// Counts a node that is going to be printed. The caller must lower `depth` again after it.
    fn enter(&mut self) -> Printed {
        self.nodes_left = self.nodes_left.checked_sub(1)?;
        self.depth += 1;
        (self.depth <= 2 * MOST_DEPTH).then_some(())
    }

    /// Prints a node as a whole: its left and its right part.
    fn all(&mut self, id: NodeId) -> Printed {
        self.left(id)?;
        self.right(id)
    }

    /// Calls `write`. While it runs, template parameters refer to the template arguments of the function `name`, if it
    /// has any.
    fn with_scope_of(&mut self, name: NodeId, write: impl FnOnce(&mut Self) -> Printed) -> Printed {
        let node = match self.graph.get(name) {
            Node::Local { name, .. } => self.graph.get(name),
            node => node,
        };
        let Node::Template { arguments, .. } = node else { return write(self) };
        // A scope is an index in `scopes`. The new scope's arguments are added there.
        let (outer, len) = (self.scope, self.scopes.len());
        self.scopes.push((arguments, outer));
        self.scope = Some(len);
        // If `write` fails, nothing more is printed, so the scope needn't be restored.
        write(self)?;
        self.scopes.truncate(len);
        self.scope = outer;
        Some(())
    }

    /// Follows template parameters to their arguments, until there is another kind of node. Returns that node and the
    /// scope in which it must be printed. `None` if a parameter has no argument.
    fn resolve_in(&self, id: NodeId, mut scope: Scope) -> Option<(NodeId, Scope)> {
        let mut id = id;
        while let Node::TemplateParameter(number) = self.graph.get(id) {
            // In the parameter list of a lambda, template parameters are those of the lambda. They have no arguments.
            if self.lambdas > 0 {
                break;
            }
            let (arguments, outer) = *self.scopes.get(scope?)?;
            id = *self.graph.list(arguments).get(number as usize)?;
            // The argument was written outside of the function. Template parameters in it are those of the surrounding
            // scope.
            scope = outer;
            // While an expansion is printed, a pack stands for its current element.
            if let (Node::Pack(list), Some(index)) = (self.graph.get(id), self.pack_index) {
                id = *self.graph.list(list).get(index)?;
            }
        }
        Some((id, scope))
    }

    /// Like [`Self::resolve_in`] in the current scope, but returns only the node.
    fn resolve(&self, id: NodeId) -> Option<Node<'a>> {
        self.resolve_in(id, self.scope).map(|(id, _)| self.graph.get(id))
    }

    /// Calls `write` in another scope.
    fn with_scope(&mut self, scope: Scope, write: impl FnOnce(&mut Self) -> Printed) -> Printed {
        let outer = std::mem::replace(&mut self.scope, scope);
        write(self)?;
        self.scope = outer;
        Some(())
    }

    /// Prints the left part of a node, or of the template argument for which it stands.
    fn left(&mut self, id: NodeId) -> Printed {
        self.enter()?;
        let (id, scope) = self.resolve_in(id, self.scope)?;
        let node = self.graph.get(id);
        self.with_scope(scope, |printer| printer.left_of(node))?;
        self.depth -= 1;
        Some(())
    }

    /// Prints the left part of a node. A type such as a pointer to a function surrounds the name of a variable of this
    /// type: `void (*` is left of the name, `)(int)` right of it. For most nodes, the left part is everything.
    fn left_of(&mut self, node: Node<'a>) -> Printed {
        match node {
            Node::Text(text) => self.put(text),
            Node::Nested { scope, name } => {
                self.all(scope)?;
                self.put("::")?;
                self.all(name)
            }
            Node::Local { function, name } => {
                self.all(function)?;
                self.put("::")?;
                self.all(name)
            }
            Node::Template { name, arguments } => {
                self.all(name)?;
                // After the name `operator<`, a space keeps the two `<` apart.
                if self.ends_with('<') {
                    self.put(" ")?;
                }
                self.put("<")?;
                // c++filt puts a space between two `>`, except if the last argument is an empty pack.
                let dropped_packs = self.list(arguments)?;
                self.put(if self.ends_with('>') && !dropped_packs { " >" } else { ">" })
            }
            Node::Pack(list) => self.list(list).map(|_| ()),
            // A template parameter without an argument is a parameter of a generic lambda, which c++filt prints as
            // `auto:1`.
            Node::TemplateParameter(number) => self.put(&format!("auto:{}", u64::from(number) + 1)),
            Node::Expansion(pattern) => self.expansion(pattern),
            Node::Constructor { class, is_destructor } => {
                self.put(if is_destructor { "~" } else { "" })?;
                self.all(class)
            }
            Node::Operator(text) => {
                self.put("operator")?;
                if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
                    self.put(" ")?;
                }
                self.put(text.trim_end())
            }
            Node::Conversion(ty) => {
                self.put("operator ")?;
                self.all(ty)
            }
            Node::Literal(name) => {
                self.put("operator\"\" ")?;
                self.put(name)
            }
            Node::Tagged { name, tag } => {
                self.all(name)?;
                self.put("[abi:")?;
                self.put(tag)?;
                self.put("]")
            }
            Node::Lambda { parameters, number } => {
                self.put("{lambda(")?;
                self.lambdas += 1;
                self.list(parameters)?;
                self.lambdas -= 1;
                self.put(&format!(")#{number}}}"))
            }
            Node::Index(number) => self.put(&number.to_string()),
            Node::Unnamed(number) => self.put(&format!("{{unnamed type#{number}}}")),
            Node::DefaultArgument { number, name } => {
                self.put(&format!("{{default arg#{number}}}::"))?;
                self.all(name)
            }
            Node::Bindings(names) => {
                self.put("[")?;
                self.list(names)?;
                self.put("]")
            }
            Node::Function(function) => self.function(&function),
            Node::Qualified { inner, qualifiers } => {
                self.left(inner)?;
                self.qualifiers(qualifiers)
            }
            Node::Suffixed { inner, suffix } => {
                self.left(inner)?;
                self.put(suffix)
            }
            Node::VendorQualified { inner, qualifier } => {
                self.left(inner)?;
                self.put(" ")?;
                self.all(qualifier)
            }
            Node::Pointer(inner) => self.pointer(inner, "*"),
            Node::LValueReference(_) | Node::RValueReference(_) => {
                let (inner, scope, text) = self.collapse(node)?;
                self.with_scope(scope, |printer| printer.pointer(inner, text))
            }
            Node::FunctionType { result, .. } => {
                self.left(result)?;
                // A result such as a pointer to a function is itself written around what follows. Its left part ends
                // with `(*`, after which there is no space.
                self.put(if self.leads_to_written_around(result) { "" } else { " " })
            }
            Node::Array { element, .. } => self.left(element),
            Node::Vector { element, size } => {
                self.all(element)?;
                self.put(" __vector(")?;
                self.all(size)?;
                self.put(")")
            }
            Node::MemberPointer { class, member } => {
                self.left(member)?;
                self.put(if self.is_written_around(member) { "(" } else { " " })?;
                self.all(class)?;
                self.put("::*")
            }
            Node::Wrapped { before, inner, after } => {
                self.put(before)?;
                self.all(inner)?;
                self.put(after)
            }
            Node::Joined { before, first, between, second } => {
                self.put(before)?;
                self.all(first)?;
                self.put(between)?;
                self.all(second)
            }
            node => self.expression(node),
        }
    }

    /// Prints the right part of a node, or of the template argument for which it stands.
    fn right(&mut self, id: NodeId) -> Printed {
        self.enter()?;
        let (id, scope) = self.resolve_in(id, self.scope)?;
        let node = self.graph.get(id);
        self.with_scope(scope, |printer| printer.right_of(node))?;
        self.depth -= 1;
        Some(())
    }

    /// Prints the right part of a node; see [`Self::left_of`]. For a function type, these are its parameters. For most
    /// nodes, it is empty.
    fn right_of(&mut self, node: Node<'a>) -> Printed {
        match node {
            Node::Qualified { inner, .. } | Node::Suffixed { inner, .. } | Node::VendorQualified { inner, .. } => {
                self.right(inner)
            }
            Node::Pointer(inner) => self.pointer_end(inner),
            Node::LValueReference(_) | Node::RValueReference(_) => {
                let (inner, scope, _) = self.collapse(node)?;
                self.with_scope(scope, |printer| printer.pointer_end(inner))
            }
            Node::MemberPointer { member, .. } => self.pointer_end(member),
            Node::FunctionType { result, parameters, qualifiers, reference, suffix } => {
                self.put("(")?;
                self.list(parameters)?;
                self.put(")")?;
                self.right(result)?;
                self.qualifiers(qualifiers)?;
                self.reference(reference)?;
                self.put(suffix)
            }
            Node::Array { element, size } => {
                // c++filt prints a space before the first dimension only.
                self.put(if self.ends_with(']') { "[" } else { " [" })?;
                if let Some(size) = size {
                    self.all(size)?;
                }
                self.put("]")?;
                self.right(element)
            }
            _ => Some(()),
        }
    }

    /// Prints the left part of a pointer or reference to `inner`. `text` is `*`, `&` or `&&`. If `inner` is a function
    /// or array type, a parenthesis opens before `text`, as in `void (*`.
    fn pointer(&mut self, inner: NodeId, text: &str) -> Printed {
        self.left(inner)?;
        if self.is_written_around(inner) {
            self.put(if matches!(self.base(inner), Some(Node::Array { .. })) { " (" } else { "(" })?;
        }
        self.put(text)
    }

    /// Prints the right part of a pointer or reference to `inner`.
    fn pointer_end(&mut self, inner: NodeId) -> Printed {
        if self.is_written_around(inner) {
            self.put(")")?;
        }
        self.right(inner)
    }

    /// True for function and array types. A variable's name stands inside such a type: in `int x[3]`, `int` is before
    /// the name and `[3]` after it.
    fn is_written_around(&self, id: NodeId) -> bool {
        matches!(self.base(id), Some(Node::FunctionType { .. } | Node::Array { .. }))
    }

    /// True if the type, or what it points or refers to, is a function or array type. Such a type is written around the
    /// `*`, `&` or name that it goes with, as in `int (*)[3]`.
    fn leads_to_written_around(&self, id: NodeId) -> bool {
        let mut next = Some(id);
        for _ in 0..MOST_DEPTH {
            let Some(id) = next else { return false };
            next = match self.base(id) {
                Some(Node::Pointer(inner) | Node::LValueReference(inner) | Node::RValueReference(inner)) => Some(inner),
                Some(Node::MemberPointer { member, .. }) => Some(member),
                Some(Node::FunctionType { .. } | Node::Array { .. }) => return true,
                _ => None,
            };
        }
        false
    }

    /// The type without its qualifiers (`const` and so on). `None` if it can't be resolved.
    fn base(&self, id: NodeId) -> Option<Node<'a>> {
        let (mut id, mut scope) = self.resolve_in(id, self.scope)?;
        for _ in 0..MOST_DEPTH {
            let Node::Qualified { inner, .. } = self.graph.get(id) else { break };
            (id, scope) = self.resolve_in(inner, scope)?;
        }
        Some(self.graph.get(id))
    }

    /// Collapses references to references, as C++ does: the result is an rvalue reference only if both are. Returns the
    /// type referred to, its scope, and `&` or `&&`. `None` if `node` isn't a reference.
    fn collapse(&self, mut node: Node<'a>) -> Option<(NodeId, Scope, &'static str)> {
        let (mut text, mut scope) = ("&&", self.scope);
        for _ in 0..MOST_DEPTH {
            let inner = match node {
                Node::LValueReference(inner) => {
                    text = "&";
                    inner
                }
                Node::RValueReference(inner) => inner,
                _ => return None,
            };
            let (id, inner_scope) = self.resolve_in(inner, scope)?;
            node = self.graph.get(id);
            scope = inner_scope;
            if !matches!(node, Node::LValueReference(_) | Node::RValueReference(_)) {
                return Some((id, scope, text));
            }
        }
        None
    }

    /// Prints a function: its result type if that is known, its name, its parameter types and its qualifiers.
    fn function(&mut self, function: &FunctionNode) -> Printed {
        let FunctionNode { name, parameters, result, qualifiers, reference } = *function;
        self.with_scope_of(name, |printer| {
            if let Some(result) = result {
                printer.left(result)?;
                printer.put(" ")?;
            }
            printer.all(name)?;
            let Some(parameters) = parameters else { return Some(()) };
            printer.put("(")?;
            // If this function is named in the parameter list of a lambda, `lambdas` isn't 0: template parameters there
            // are those of the lambda and have no arguments. But template parameters between this function's own
            // parentheses stand for this function's template arguments. So `lambdas` is 0 while they are printed.
            let lambdas = std::mem::take(&mut printer.lambdas);
            printer.list(parameters)?;
            printer.lambdas = lambdas;
            printer.put(")")?;
            if let Some(result) = result {
                printer.right(result)?;
            }
            printer.qualifiers(qualifiers)?;
            printer.reference(reference)
        })
    }

    fn qualifiers(&mut self, qualifiers: Qualifiers) -> Printed {
        self.put(if qualifiers.is_const { " const" } else { "" })?;
        self.put(if qualifiers.is_volatile { " volatile" } else { "" })?;
        self.put(if qualifiers.is_restrict { " __restrict" } else { "" })
    }

    fn reference(&mut self, reference: RefQualifier) -> Printed {
        self.put(match reference {
            RefQualifier::None => "",
            RefQualifier::LValue => " &",
            RefQualifier::RValue => " &&",
        })
    }

    /// Prints items separated by commas. Like c++filt, drops empty packs at the end, with the commas before them.
    /// Returns true if it dropped any.
    fn list(&mut self, list: List) -> Option<bool> {
        // The end of the text so far, without empty items at its end.
        let mut end = self.out.len();
        for (number, &item) in self.graph.list(list).iter().enumerate() {
            if number > 0 {
                self.put(", ")?;
            }
            let start = self.out.len();
            self.all(item)?;
            if self.out.len() > start {
                end = self.out.len();
            }
        }
        let dropped_packs = end < self.out.len();
        self.out.truncate(end);
        Some(dropped_packs)
    }

    /// Prints a pattern once for each element of the pack in it, or with `...` if the pack isn't known.
    fn expansion(&mut self, pattern: NodeId) -> Printed {
        let mut nodes_left = MOST_NODES;
        let Some(pack) = self.find_pack(pattern, 0, &mut nodes_left) else {
            self.subexpression(pattern)?;
            return self.put("...");
        };
        // The nodes that were searched count as if they had been printed, because the work for one name is limited.
        self.nodes_left = self.nodes_left.checked_sub(MOST_NODES - nodes_left)?;
        let outer = self.pack_index;
        for index in 0..self.graph.list(pack).len() {
            if index > 0 {
                self.put(", ")?;
            }
            self.pack_index = Some(index);
            self.all(pattern)?;
        }
        self.pack_index = outer;
        Some(())
    }

    /// Finds the first pack in a pattern: a template parameter whose argument is a pack. Doesn't look into expansions
    /// inside the pattern. `None` if there is none, or if the search would go too deep or visit more than `nodes_left`
    /// nodes. Lowers `nodes_left` by the number of visited nodes.
    fn find_pack(&self, id: NodeId, depth: u32, nodes_left: &mut u32) -> Option<List> {
        *nodes_left = nodes_left.checked_sub(1)?;
        if depth > MOST_DEPTH {
            return None;
        }
        // The nodes inside this one are searched in the order in which they are printed.
        let mut find = |id: NodeId| self.find_pack(id, depth + 1, nodes_left);
        match self.graph.get(id) {
            Node::TemplateParameter(number) => {
                let (arguments, _) = *self.scopes.get(self.scope?)?;
                match self.graph.get(*self.graph.list(arguments).get(number as usize)?) {
                    // Template parameters in a lambda's parameter list have no arguments, so no packs either.
                    Node::Pack(list) if self.lambdas == 0 => Some(list),
                    _ => None,
                }
            }
            Node::Nested { scope: first, name: second }
            | Node::Local { function: first, name: second }
            | Node::MemberPointer { class: first, member: second }
            | Node::Joined { first, second, .. }
            | Node::Binary { left: first, right: second, .. }
            | Node::NamedCast { ty: first, operand: second, .. } => find(first).or_else(|| find(second)),
            Node::Template { name, arguments } => {
                find(name).or_else(|| self.graph.list(arguments).iter().find_map(|&argument| find(argument)))
            }
            Node::Conversion(inner)
            | Node::Qualified { inner, .. }
            | Node::Suffixed { inner, .. }
            | Node::VendorQualified { inner, .. }
            | Node::Pointer(inner)
            | Node::LValueReference(inner)
            | Node::RValueReference(inner)
            | Node::Wrapped { inner, .. }
            | Node::Tagged { name: inner, .. }
            | Node::Number { ty: inner, .. }
            | Node::Unary { operand: inner, .. } => find(inner),
            Node::FunctionType { result, parameters, .. } => {
                find(result).or_else(|| self.graph.list(parameters).iter().find_map(|&parameter| find(parameter)))
            }
            Node::Array { element, size } => find(element).or_else(|| find(size?)),
            Node::Vector { element, size } => find(element).or_else(|| find(size)),
            Node::Call { callee: first, arguments: list } | Node::Cast { ty: first, arguments: list } => {
                find(first).or_else(|| self.graph.list(list).iter().find_map(|&item| find(item)))
            }
            Node::Braced { ty, items } => {
                ty.and_then(&mut find).or_else(|| self.graph.list(items).iter().find_map(|&item| find(item)))
            }
            Node::Conditional { condition, then, otherwise } => [condition, then, otherwise].into_iter().find_map(find),
            _ => None,
        }
    }

    /// Prints an expression. Fails for other nodes.
    fn expression(&mut self, node: Node<'a>) -> Printed {
        match node {
            Node::Number { ty, digits, is_negative } => self.number(ty, digits, is_negative),
            Node::Unary { operator, operand, is_postfix: true } => {
                self.subexpression(operand)?;
                self.put(operator)
            }
            Node::Unary { operator, operand, .. } => {
                self.put(operator)?;
                // If `&` is applied to a member function, c++filt leaves out the function's parameters, unless the
                // function has qualifiers.
                if operator == "&"
                    && let Some(Node::Function(FunctionNode { name, qualifiers, reference, .. })) =
                        self.resolve(operand)
                    && qualifiers == Qualifiers::default()
                    && reference == RefQualifier::None
                    && matches!(self.graph.get(name), Node::Nested { .. })
                {
                    return self.all(name);
                }
                self.subexpression(operand)
            }
            Node::Binary { operator, left, right } => {
                // An expression with `>` is printed in parentheses, because the `>` could otherwise be taken for the
                // end of the template arguments.
                let is_closing = operator == ">";
                self.put(if is_closing { "(" } else { "" })?;
                self.subexpression(left)?;
                self.put(operator)?;
                self.subexpression(right)?;
                self.put(if is_closing { ")" } else { "" })
            }
            Node::Conditional { condition, then, otherwise } => {
                self.subexpression(condition)?;
                self.put("?")?;
                self.subexpression(then)?;
                self.put(" : ")?;
                self.subexpression(otherwise)
            }
            Node::Call { callee, arguments } => {
                match self.resolve(callee) {
                    Some(Node::Function(FunctionNode { name, .. })) => self.all(name)?,
                    _ => self.subexpression(callee)?,
                }
                self.put("(")?;
                self.list(arguments)?;
                self.put(")")
            }
            Node::Cast { ty, arguments } => {
                self.put("(")?;
                self.all(ty)?;
                self.put(")")?;
                match *self.graph.list(arguments) {
                    [only] => self.subexpression(only),
                    _ => {
                        self.put("(")?;
                        self.list(arguments)?;
                        self.put(")")
                    }
                }
            }
            Node::NamedCast { name, ty, operand } => {
                self.put(name)?;
                self.put("<")?;
                self.all(ty)?;
                self.put(">(")?;
                self.all(operand)?;
                self.put(")")
            }
            Node::Braced { ty, items } => {
                if let Some(ty) = ty {
                    self.all(ty)?;
                }
                self.put("{")?;
                self.list(items)?;
                self.put("}")
            }
            // The search for the pack may visit as many nodes as may be printed.
            Node::PackLength(pack) => match self.find_pack(pack, 0, &mut MOST_NODES.clone()) {
                Some(list) => {
                    let len = self.graph.list(list).len();
                    self.put(&len.to_string())
                }
                None => {
                    self.put("sizeof...(")?;
                    self.all(pack)?;
                    self.put(")")
                }
            },
            Node::Parameter(number) => self.put(&format!("{{parm#{number}}}")),
            Node::Fold { operator, pack, start, is_left } => {
                self.put("(")?;
                // Without a start value: `(... + pack)` from the left, `(pack + ...)` from the right. With one:
                // `(start + ... + pack)` or `(pack + ... + start)`.
                match (start, is_left) {
                    (None, true) => {
                        self.put("...")?;
                        self.put(operator)?;
                        self.subexpression(pack)?;
                    }
                    (None, false) => {
                        self.subexpression(pack)?;
                        self.put(operator)?;
                        self.put("...")?;
                    }
                    (Some(start), _) => {
                        let (first, last) = if is_left { (start, pack) } else { (pack, start) };
                        self.subexpression(first)?;
                        self.put(operator)?;
                        self.put("...")?;
                        self.put(operator)?;
                        self.subexpression(last)?;
                    }
                }
                self.put(")")
            }
            Node::New { text, placement, ty, arguments } => {
                self.put(text)?;
                self.put(" ")?;
                if !self.graph.list(placement).is_empty() {
                    self.put("(")?;
                    self.list(placement)?;
                    self.put(") ")?;
                }
                self.all(ty)?;
                let Some(arguments) = arguments else { return Some(()) };
                self.put("(")?;
                self.list(arguments)?;
                self.put(")")
            }
            _ => None,
        }
    }

    /// Prints an operand of an expression, in parentheses unless it is a simple name.
    fn subexpression(&mut self, id: NodeId) -> Printed {
        let node = self.graph.get(id);
        let is_simple = matches!(node, Node::Text(_) | Node::Nested { .. } | Node::Braced { .. } | Node::Parameter(_));
        if is_simple {
            return self.all(id);
        }
        self.put("(")?;
        self.all(id)?;
        self.put(")")
    }

    /// Prints a numeric literal, such as `5u`, `true` or `(char)65`. The digits of a floating-point number are those of
    /// its bits in hexadecimal, so they are printed in brackets, as c++filt does.
    fn number(&mut self, ty: NodeId, digits: &str, is_negative: bool) -> Printed {
        let suffix = match self.graph.get(ty) {
            Node::Text("bool") if matches!(digits, "0" | "1") && !is_negative => {
                return self.put(if digits == "0" { "false" } else { "true" });
            }
            Node::Text("int") => Some(""),
            Node::Text("unsigned int") => Some("u"),
            Node::Text("long") => Some("l"),
            Node::Text("unsigned long") => Some("ul"),
            Node::Text("long long") => Some("ll"),
            Node::Text("unsigned long long") => Some("ull"),
            _ => None,
        };
        let is_float = matches!(self.graph.get(ty), Node::Text("float" | "double" | "long double" | "__float128"));
        // If no suffix stands for a number's type, the type is printed before the number, as in `(char)65`.
        if suffix.is_none() {
            self.put("(")?;
            self.all(ty)?;
            self.put(")")?;
        }
        self.put(if is_negative { "-" } else { "" })?;
        self.put(if is_float { "[" } else { "" })?;
        self.put(digits)?;
        self.put(if is_float { "]" } else { "" })?;
        self.put(suffix.unwrap_or(""))
    }
}
