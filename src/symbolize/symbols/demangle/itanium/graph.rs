//! A parsed name as a graph of nodes. A part to which the name refers back is a single node.

/// An index into [`Graph::nodes`].
pub(super) type NodeId = u32;

/// Several nodes in order: a range of [`Graph::lists`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Qualifiers of a type, or of `this` in a member function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
}

/// Whether `&` or `&&` follows the parameters of a member function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RefQualifier {
    #[default]
    None,
    LValue,
    RValue,
}

/// A part of a name. The comments on the variants show how each is written in C++.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'a> {
    /// An identifier, or text that is printed as it is.
    Text(&'a str),
    /// A name in a namespace or class: `scope::name`
    Nested {
        scope: NodeId,
        name: NodeId,
    },
    /// `function(parameters)::name`: an entity that is local to a function.
    Local {
        function: NodeId,
        name: NodeId,
    },
    /// A template with its arguments: `name<arguments>`
    Template {
        name: NodeId,
        arguments: List,
    },
    /// The template arguments for which a parameter pack stands.
    Pack(List),
    /// `T_`, `T0_` and so on: stands for the template argument with this index (from 0) of the enclosing function.
    TemplateParameter(u32),
    /// `pattern...`: the pattern is repeated for each element of the pack in it.
    Expansion(NodeId),
    /// `name` or `~name`: the constructor or destructor of a class. `class` is the class's name without its scope.
    Constructor {
        class: NodeId,
        is_destructor: bool,
    },
    /// The name of an operator function: `operator+`
    Operator(&'a str),
    /// The name of a conversion operator, which is the type to which it converts: `operator TYPE`
    Conversion(NodeId),
    /// The name of a user-defined literal operator: `operator"" name`
    Literal(&'a str),
    /// A name with an ABI tag, such as `[abi:cxx11]`: `name[abi:tag]`
    Tagged {
        name: NodeId,
        tag: &'a str,
    },
    /// A lambda. The lambdas in a function are numbered: `{lambda(parameters)#number}`
    Lambda {
        parameters: List,
        number: u32,
    },
    /// A number that is printed as it is, such as the index in an expression.
    Index(u32),
    /// A type without a name. The unnamed types in a scope are numbered: `{unnamed type#number}`
    Unnamed(u32),
    /// Something in the default argument of a function's parameter: `{default arg#number}::name`
    DefaultArgument {
        number: u32,
        name: NodeId,
    },
    /// `[a, b]`: the names of a structured binding.
    Bindings(List),
    /// A function's name with its parameter types, and with its result type if the mangled name has that.
    Function(FunctionNode),
    Qualified {
        inner: NodeId,
        qualifiers: Qualifiers,
    },
    /// A type followed by a fixed text: `TYPE _Complex`
    Suffixed {
        inner: NodeId,
        suffix: &'a str,
    },
    /// A type with a compiler's own qualifier, which isn't part of C++: `TYPE qualifier`
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
    /// An array type: `TYPE [size]`, or `TYPE []` if the size is missing.
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
    /// A node with fixed texts before and after it: `vtable for X`, `struct X`, `decltype (` … `)`
    Wrapped {
        before: &'a str,
        inner: NodeId,
        after: &'a str,
    },
    /// Two nodes, with fixed texts before the first and between the two.
    Joined {
        before: &'a str,
        first: NodeId,
        between: &'a str,
        second: NodeId,
    },
    /// A numeric literal. `ty` is its type, which is shown by a suffix (`5u`) or a cast (`(char)5`).
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
    /// A call in an expression: `callee(arguments)`
    Call {
        callee: NodeId,
        arguments: List,
    },
    /// A conversion in an expression: `(TYPE)(arguments)`
    Cast {
        ty: NodeId,
        arguments: List,
    },
    /// A conversion by a named cast, such as `static_cast<TYPE>(operand)`
    NamedCast {
        name: &'a str,
        ty: NodeId,
        operand: NodeId,
    },
    /// A list in braces, with or without a type before it: `TYPE{…}`
    Braced {
        ty: Option<NodeId>,
        items: List,
    },
    /// `sizeof...(pack)`. Printed as a number if the length of the pack is known.
    PackLength(NodeId),
    /// `{parm#number}`: a parameter of the enclosing function in an expression.
    Parameter(u32),
    /// A fold expression: `(pack + ...)` or `(... + pack)`; with a `start`, `(start + ... + pack)`.
    Fold {
        operator: &'a str,
        pack: NodeId,
        start: Option<NodeId>,
        is_left: bool,
    },
    /// `new (placement) TYPE(arguments)`: a `new` expression.
    New {
        text: &'a str,
        placement: List,
        ty: NodeId,
        arguments: Option<List>,
    },
}

/// A function's name and type. The result type is `None` if the mangled name doesn't have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionNode {
    pub(super) name: NodeId,
    /// The parameter types; `None` if the name isn't that of a function.
    pub(super) parameters: Option<List>,
    pub(super) result: Option<NodeId>,
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: RefQualifier,
}

/// A parsed name: its nodes, and the lists of nodes that some of them contain.
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

/// The maximum nesting for parsing and printing. Names with deeper nesting are not demangled.
pub(super) const MOST_DEPTH: u32 = 384;
