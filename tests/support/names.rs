//! Function names for simulated programs, such as Rust compilers make.

/// The name of the function with this number.
pub(crate) fn name(function: u64) -> String {
    match function % 4 {
        0 => format!("demo::f{function}"),
        1 => format!("<[u8; {function}] as std::fmt::Debug>::fmt"),
        2 => format!("demo::g{function}::{{closure#0}}"),
        _ => format!("core::ptr::drop_in_place::<T{function}> - shim(Some(T{function}))"),
    }
}
