//! Writes numbers and text in either byte order.

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// A buffer to which values are appended in one byte order.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    pub(crate) bytes: Vec<u8>,
    pub(crate) order: Order,
}

impl Out {
    pub(crate) fn new(order: Order) -> Self {
        Self { bytes: Vec::new(), order }
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = if self.order == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.raw(&bytes)
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.order == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.raw(&bytes)
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.order == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.raw(&bytes)
    }

    pub(crate) fn words(&mut self, values: &[u64]) -> &mut Self {
        for &value in values {
            self.u64(value);
        }
        self
    }

    /// Appends text, a NUL, and zeros up to a multiple of 8 bytes. Records of perf.data hold names like this.
    pub(crate) fn padded_text(&mut self, text: &[u8]) -> &mut Self {
        let end = self.bytes.len() + (text.len() + 1).next_multiple_of(8);
        self.raw(text).bytes.resize(end, 0);
        self
    }
}
