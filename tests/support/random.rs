//! Numbers and names for simulated programs: the same ones every time.

/// Xorshift: the same numbers every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The name of a function.
pub(crate) fn name(function: u64) -> String {
    match function % 4 {
        0 => format!("demo::f{function}"),
        1 => format!("<[u8; {function}] as std::fmt::Debug>::fmt"),
        2 => format!("demo::g{function}::{{closure#0}}"),
        _ => format!("core::ptr::drop_in_place::<T{function}> - shim(Some(T{function}))"),
    }
}
