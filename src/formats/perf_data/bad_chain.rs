//! Removes call chain entries that make perf drop the whole chain.
//!
//! Words of a call chain at or above `PERF_CONTEXT_MAX` are context markers. Without frame pointers, the kernel may
//! take any word of the stack for a return address. If such a word is in the range of the markers but isn't a marker
//! that perf knows, perf (6.1) drops the whole chain, including the sample's own address; only with `-v` does it report
//! `invalid callchain context`. Zeros and other words that aren't addresses do no harm.

use super::attr::EventAttr;
use super::convert::encode_with_chain;
use super::sample::{Fields, Sample, USER_DEFERRED, is_known_marker, is_marker};
use super::walk::RawRecord;
use super::words::Words;
use crate::error::Result;

/// True if an entry of a call chain makes perf drop the whole chain: it is in the range of the context markers, but
/// isn't a marker that perf knows.
#[inline]
pub fn is_bad_entry(word: u64) -> bool {
    is_marker(word) && !is_known_marker(word)
}

impl Sample<'_> {
    /// Number of entries that make perf drop the call chain.
    #[inline]
    pub fn bad_chain_entries(&self) -> usize {
        self.callchain.iter().filter(|&word| is_bad_entry(word)).count()
    }
}

/// Copies a SAMPLE record without the call chain entries that make perf drop the whole chain. `None` if the record has
/// no such entry. Fails if the record is too short for its fields.
pub fn remove_bad_entries(raw: &RawRecord<'_>, attr: &EventAttr) -> Result<Option<Vec<u8>>> {
    let mut fields = Fields { body: raw.body(), attr };
    let start = fields.body.offset();
    // Read the fields up to the end of the chain, to learn where the chain begins and ends.
    fields.skip_to_chain()?;
    let chain_start = (fields.body.offset() - start) as usize;
    let chain = fields.callchain()?;
    let chain_end = (fields.body.offset() - start) as usize;
    let body = &raw.bytes[8..]; // without the record's header
    let Some(good) = good_words(chain) else { return Ok(None) };
    // The new record is shorter than `raw`, so it always fits. `encode_with_chain` never returns `None` here, which
    // callers would take for "no such entry".
    Ok(encode_with_chain(raw, &body[..chain_start], &good, &[&body[chain_end..]]))
}

/// Copies a CALLCHAIN_DEFERRED record (cookie, length of the chain, chain, sample ID) without the call chain entries
/// that make perf drop the whole chain. `None` if the record has no such entry.
pub fn remove_bad_deferred_entries(raw: &RawRecord<'_>) -> Result<Option<Vec<u8>>> {
    let mut fields = raw.body();
    let cookie = fields.bytes(8, "cookie")?;
    let count = fields.u64("length of the call chain")?;
    let chain = Words::new(fields.bytes(count.saturating_mul(8), "call chain")?, raw.endian);
    let Some(good) = good_words(chain) else { return Ok(None) };
    Ok(encode_with_chain(raw, cookie, &good, &[fields.rest()]))
}

/// The words of a call chain without the entries that make perf drop the whole chain; `None` if there are no such
/// entries.
fn good_words(chain: Words<'_>) -> Option<Vec<u64>> {
    // If the chain ends with `USER_DEFERRED` and one more word, that word is a cookie: it identifies the later record
    // with the rest of the chain. A cookie may have any value, so it stays.
    let ends_with_cookie = chain.len() >= 2 && chain.get(chain.len() - 2) == Some(USER_DEFERRED);
    let mut good = Vec::with_capacity(chain.len());
    for (index, word) in chain.iter().enumerate() {
        let is_cookie = ends_with_cookie && index == chain.len() - 1;
        if is_cookie || !is_bad_entry(word) {
            good.push(word);
        }
    }
    if good.len() < chain.len() { Some(good) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cursor::Endian;
    use crate::formats::perf_data::{Records, kind, record};
    use linux_perf_event_reader::constants as abi;

    fn attr() -> EventAttr {
        let sample_type = abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_CALLCHAIN | abi::PERF_SAMPLE_RAW;
        EventAttr { sample_type, ..EventAttr::default() }
    }

    fn bytes(words: &[u64], endian: Endian) -> Vec<u8> {
        let bytes = |word: &u64| if endian == Endian::Little { word.to_le_bytes() } else { word.to_be_bytes() };
        words.iter().flat_map(bytes).collect()
    }

    #[test]
    fn bad_entries_go_and_all_else_stays() {
        let (kernel, user) = (abi::PERF_CONTEXT_KERNEL, abi::PERF_CONTEXT_USER);
        let chain = [kernel, 1, user, 2, 0, u64::MAX, 3, -4095i64 as u64, -4096i64 as u64];
        // After the chain come the raw data: a 4-byte size and 4 bytes.
        let words = [&[2, chain.len() as u64], &chain[..], &[0x5555_5555_0000_0004]].concat();
        let expected = [2, 7, kernel, 1, user, 2, 0, 3, -4096i64 as u64, 0x5555_5555_0000_0004];
        for endian in [Endian::Little, Endian::Big] {
            let mut words = words.clone();
            let mut expected = expected;
            if endian == Endian::Big {
                (words[11], expected[9]) = (0x0000_0004_5555_5555, 0x0000_0004_5555_5555);
            }
            let old = record(kind::SAMPLE, 0x4002, &bytes(&words, endian), endian).unwrap();
            let raw = Records::new(&old, 0, endian).next().unwrap();
            assert_eq!(Sample::parse(&raw, 0, &attr()).unwrap().bad_chain_entries(), 2);
            let new = remove_bad_entries(&raw, &attr()).unwrap().unwrap();
            assert_eq!(new, record(kind::SAMPLE, 0x4002, &bytes(&expected, endian), endian).unwrap());
            let raw = Records::new(&new, 0, endian).next().unwrap();
            assert_eq!(remove_bad_entries(&raw, &attr()).unwrap(), None);
        }
    }

    #[test]
    fn marks_of_the_kernel_stay() {
        for mark in [32, 128, 512, 640, 2048, 2176, 2560] {
            assert!(!is_bad_entry(-(mark as i64) as u64), "-{mark}");
        }
        for word in [1, 31, 33, 4095] {
            assert!(is_bad_entry(-(word as i64) as u64), "-{word}");
        }
    }
}
