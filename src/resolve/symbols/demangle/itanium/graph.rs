//! A parsed name as a graph. Parts to which the name refers back are shared.

/// An index into [`Graph::nodes`].
pub(super) type NodeId = u32;

/// A range of [`Graph::lists`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Qualifiers of a type, or of a member function's `this`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
}

/// The `&` or `&&` after a member function's parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RefQualifier {
    #[default]
    None,
    LValue,
    RValue,
}

/// A part of a name. The comments show how each kind is written in C++.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'a> {
    /// An identifier or a fixed text.
    Text(&'a str),
    /// `scope::name`
    Nested {
        scope: NodeId,
        name: NodeId,
    },
    /// An entity that is local to a function: `function(parameters)::name`
    Local {
        function: NodeId,
        name: NodeId,
    },
    /// `name<arguments>`
    Template {
        name: NodeId,
        arguments: List,
    },
    /// The arguments of a parameter pack.
    Pack(List),
    /// `T_`, `T0_` and so on: the enclosing function's template argument with this index.
    TemplateParameter(u32),
    /// `pattern...`
    Expansion(NodeId),
    /// The constructor or destructor of the class with this name.
    Constructor {
        class: NodeId,
        is_destructor: bool,
    },
    /// `operator+`
    Operator(&'a str),
    /// `operator TYPE`
    Conversion(NodeId),
    /// `operator"" name`
    Literal(&'a str),
    /// `name[abi:tag]`
    Tagged {
        name: NodeId,
        tag: &'a str,
    },
    /// `{lambda(parameters)#number}`
    Lambda {
        parameters: List,
        number: u32,
    },
    /// A plain number.
    Index(u32),
    /// `{unnamed type#number}`
    Unnamed(u32),
    /// `{default arg#number}::name`
    DefaultArgument {
        number: u32,
        name: NodeId,
    },
    /// `[a, b]`
    Bindings(List),
    /// A function's name with its parameter types, and its result type if that is encoded.
    Function(FunctionNode),
    Qualified {
        inner: NodeId,
        qualifiers: Qualifiers,
    },
    /// A type with a suffix: `TYPE _Complex`
    Suffixed {
        inner: NodeId,
        suffix: &'a str,
    },
    VendorQualified {
        inner: NodeId,
        qualifier: NodeId,
    },
    Pointer(NodeId),
    LValueReference(NodeId),
    RValueReference(NodeId),
    FunctionType {
        result: NodeId,
        parameters: List,
        qualifiers: Qualifiers,
        reference: RefQualifier,
        suffix: &'a str,
    },
    /// `TYPE [size]`; the size may be missing: `TYPE []`
    Array {
        element: NodeId,
        size: Option<NodeId>,
    },
    Vector {
        element: NodeId,
        size: NodeId,
    },
    MemberPointer {
        class: NodeId,
        member: NodeId,
    },
    /// A node between fixed texts: `vtable for X`, `struct X`, `decltype (` … `)`
    Wrapped {
        before: &'a str,
        inner: NodeId,
        after: &'a str,
    },
    /// Two nodes with fixed text before and between them.
    Joined {
        before: &'a str,
        first: NodeId,
        between: &'a str,
        second: NodeId,
    },
    /// A literal. Its type is shown by a suffix or by a cast.
    Number {
        ty: NodeId,
        digits: &'a str,
        is_negative: bool,
    },
    Unary {
        operator: &'a str,
        operand: NodeId,
        is_postfix: bool,
    },
    Binary {
        operator: &'a str,
        left: NodeId,
        right: NodeId,
    },
    Conditional {
        condition: NodeId,
        then: NodeId,
        otherwise: NodeId,
    },
    /// `callee(arguments)`
    Call {
        callee: NodeId,
        arguments: List,
    },
    /// `(TYPE)(arguments)`
    Cast {
        ty: NodeId,
        arguments: List,
    },
    /// `static_cast<TYPE>(operand)`
    NamedCast {
        name: &'a str,
        ty: NodeId,
        operand: NodeId,
    },
    /// `TYPE{…}`
    Braced {
        ty: Option<NodeId>,
        items: List,
    },
    /// `sizeof...(pack)`, or the pack's length if it is known.
    PackLength(NodeId),
    /// `{parm#number}`
    Parameter(u32),
    /// `(pattern op ...)`
    Fold {
        operator: &'a str,
        pack: NodeId,
        start: Option<NodeId>,
        is_left: bool,
    },
    /// `new (placement) TYPE(arguments)`
    New {
        text: &'a str,
        placement: List,
        ty: NodeId,
        arguments: Option<List>,
    },
}

/// A function's name and type.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionNode {
    pub(super) name: NodeId,
    /// The parameter types. `None` if the name isn't that of a function.
    pub(super) parameters: Option<List>,
    pub(super) result: Option<NodeId>,
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: RefQualifier,
}

/// A parsed name: its nodes, and the lists of nodes to which some of them refer.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) lists: Vec<NodeId>,
}

impl<'a> Graph<'a> {
    pub(super) fn get(&self, id: NodeId) -> Node<'a> {
        self.nodes[id as usize]
    }

    pub(super) fn list(&self, list: List) -> &[NodeId] {
        &self.lists[list.start as usize..list.end as usize]
    }
}

/// The maximum depth of parsing and of printing. Deeper names are not demangled.
pub(super) const MOST_DEPTH: u32 = 384;
