//! A name as a graph: parts that the ABI lets a name refer back to are shared.

/// The number of a node.
pub(super) type NodeId = u32;

/// A stretch of [`Graph::lists`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Qualifiers of a type or of a member function's `this`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
}

/// `&` or `&&` behind a member function's parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RefQualifier {
    #[default]
    None,
    LValue,
    RValue,
}

/// A part of a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'a> {
    /// An identifier, or a fixed text.
    Text(&'a str),
    /// `scope::name`
    Nested {
        scope: NodeId,
        name: NodeId,
    },
    /// A function's local entity: `function(parameters)::name`
    Local {
        function: NodeId,
        name: NodeId,
    },
    /// `name<arguments>`
    Template {
        name: NodeId,
        arguments: List,
    },
    /// The arguments that stand for one pack parameter.
    Pack(List),
    /// `T_`: the argument of this number, of the function whose type it is in.
    TemplateParameter(u32),
    /// `pattern...`
    Expansion(NodeId),
    /// The constructor or destructor of a class of this name.
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
    /// `{unnamed type#number}`
    Unnamed(u32),
    /// `{default arg#number}::name`
    DefaultArgument {
        number: u32,
        name: NodeId,
    },
    /// `[a, b]`
    Bindings(List),
    /// A function's name with its type.
    Function(FunctionNode),
    Qualified {
        inner: NodeId,
        qualifiers: Qualifiers,
    },
    /// A type with a word behind it: `TYPE _Complex`
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
    /// The size may be missing: `TYPE []`
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
    /// A text before something: `vtable for X`, `struct X`, `decltype (` … `)`.
    Wrapped {
        before: &'a str,
        inner: NodeId,
        after: &'a str,
    },
    /// Two things with a text between.
    Joined {
        before: &'a str,
        first: NodeId,
        between: &'a str,
        second: NodeId,
    },
    /// A literal of a type, which is spelled by a suffix or by a cast.
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
    /// `sizeof...(pack)`, which is its length where that is known.
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

/// The name of a function and its type.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionNode {
    pub(super) name: NodeId,
    /// `None` for what is not a function.
    pub(super) parameters: Option<List>,
    pub(super) result: Option<NodeId>,
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: RefQualifier,
}

/// A parsed name.
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

/// Parsing and printing go this deep.
pub(super) const MOST_DEPTH: u32 = 384;
