//! `meta.categories`: kinds of code, with their modules as subcategories.

use crate::analysis::category::Category;
use crate::model::tier::Tier;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// An entry of `meta.categories`.
#[derive(Debug, Clone, Serialize)]
struct CategoryEntry {
    name: &'static str,
    color: &'static str,
    subcategories: Vec<String>,
}

impl CategoryEntry {
    fn new(name: &'static str, color: &'static str) -> Self {
        // Subcategory 0 is for frames without a module.
        Self { name, color, subcategories: vec!["Other".to_owned()] }
    }
}

/// The category and subcategory of a frame, as indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CategoryPair {
    pub(super) category: usize,
    pub(super) subcategory: usize,
}

#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Categories {
    list: Vec<CategoryEntry>,
    /// The position of each subcategory in the list of its category. The key is the index of the category, and that of
    /// the library after which the subcategory is named.
    #[serde(skip)]
    subcategories: FxHashMap<(usize, usize), usize>,
}

/// The index of the category for garbage collection, after those of [`Category::ALL`]. A collection is recognized by
/// the names of its functions.
const GC: usize = Category::ALL.len();
/// The index of the category for everything that isn't code.
pub(super) const OTHER: usize = GC + 1;

impl Default for Categories {
    /// All categories in the order of their indices, still without subcategories.
    fn default() -> Self {
        let mut list = Vec::new();
        for category in Category::ALL {
            list.push(CategoryEntry::new(category.name(), color(category)));
        }
        list.push(CategoryEntry::new("GC", "red"));
        // The viewer requires a gray category called "Other".
        list.push(CategoryEntry::new("Other", "grey"));
        Self { list, subcategories: FxHashMap::default() }
    }
}

impl Categories {
    /// The category of a frame. `in_gc` is true if the frame is part of garbage collection; `library` is the index and
    /// the name of the frame's library.
    pub(super) fn find(&mut self, category: Category, in_gc: bool, library: Option<(usize, &str)>) -> CategoryPair {
        let category =
            if in_gc { GC } else { Category::ALL.iter().position(|each| *each == category).unwrap_or(OTHER) };
        // Subcategory 0 is for frames without a library. Libraries follow in the order in which they are first found.
        let Some((number, name)) = library else { return CategoryPair { category, subcategory: 0 } };
        let list = &mut self.list[category].subcategories;
        let subcategory = *self.subcategories.entry((category, number)).or_insert_with(|| {
            list.push(name.to_owned());
            list.len() - 1
        });
        CategoryPair { category, subcategory }
    }
}

/// The name of a category's color. The viewer supports only a few colors.
fn color(category: Category) -> &'static str {
    match category {
        Category::Kernel => "orange",
        Category::Native => "blue",
        Category::NativeUnnamed => "grey",
        Category::Inlined => "lightblue",
        Category::Jit(Some(Tier::Interpreted)) => "lightred",
        Category::Jit(Some(Tier::Baseline)) => "yellow",
        Category::Jit(Some(Tier::MidTier)) => "lightgreen",
        Category::Jit(Some(Tier::Optimized)) => "green",
        Category::Jit(Some(Tier::Builtin)) => "purple",
        Category::Jit(Some(Tier::Stub)) => "brown",
        Category::Jit(Some(Tier::Wasm | Tier::RegExp)) => "magenta",
        Category::Jit(None) => "green",
        Category::JitUnnamed | Category::Anonymous | Category::Unknown => "darkgray",
    }
}

/// Whether a function with this name begins a garbage collection, so that everything that it calls is part of it. Knows
/// the entry points of the collectors of V8, HotSpot, CPython, PHP, Erlang, Go and .NET, and the name that V8's own
/// profiles use.
pub(super) fn collects_garbage(name: &[u8]) -> bool {
    const PREFIXES: &[&[u8]] = &[
        b"(garbage collector)",
        b"v8::internal::Heap::CollectGarbage",
        b"v8::internal::Heap::PerformGarbageCollection",
        b"v8::internal::ScavengerCollector::",
        b"v8::internal::MarkCompactCollector::",
        b"v8::internal::ConcurrentMarking::",
        b"v8::internal::Sweeper::",
        b"GenCollectedHeap::do_collection",
        b"G1CollectedHeap::do_collection_pause",
        b"G1ConcurrentMark",
        b"GCTaskThread::run",
        b"ParallelScavengeHeap::",
        b"PSScavenge::",
        b"gc_collect_main",
        b"gc_collect_generations",
        b"zend_gc_collect_cycles",
        b"erts_garbage_collect",
        b"runtime.gcBgMarkWorker",
        b"runtime.gcStart",
        b"WKS::gc_heap::garbage_collect",
        b"SVR::gc_heap::garbage_collect",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
