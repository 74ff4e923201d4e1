//! Compares two outputs of `perf script`, frame by frame.

use std::collections::BTreeMap;
use std::fmt;

/// Identifies a sample: thread and time, as printed.
pub(crate) type Key = (String, String);

/// The function names of each sample, innermost first. Samples with the same key are in the order of the text.
pub(crate) type Samples = BTreeMap<Key, Vec<Vec<String>>>;

/// Parses the output of `perf script -F comm,tid,time,ip,sym,dso`: a line `comm tid time:`, then one line per frame.
pub(crate) fn parse(text: &str) -> Samples {
    let mut samples = Samples::new();
    let mut current: Option<&mut Vec<String>> = None;
    for line in text.lines() {
        if line.trim().is_empty() {
            current = None;
        } else if let Some(frames) = current.as_mut().filter(|_| line.starts_with([' ', '\t'])) {
            frames.push(function(line.trim_start()));
        } else if let Some(key) = key(line) {
            let list = samples.entry(key).or_default();
            list.push(Vec::new());
            current = list.last_mut();
        }
    }
    samples
}

/// The function of a frame: `name` in `7f00 name+0x1c (/lib/libc.so.6)`.
fn function(frame: &str) -> String {
    // Such as `(/dev/zero (deleted))`.
    let frame = &frame.replace(" (deleted))", ")");
    let name = frame.split_once(' ').map_or("", |(_, name)| name);
    let name = name.rsplit_once(" (").filter(|_| name.ends_with(')')).map_or(name, |(name, dso)| {
        // perf prints `(inlined)` instead of the file.
        if dso == "inlined)" { frame.split_once(' ').map_or("", |(_, name)| name) } else { name }
    });
    name.rsplit_once("+0x").map_or(name, |(name, _)| name).trim_end().to_owned()
}

/// Parses `comm  tid  12.345678:`. Thread names may contain spaces.
fn key(line: &str) -> Option<Key> {
    let (rest, time) = line.trim_end().trim_end_matches(':').rsplit_once(' ')?;
    let tid = rest.trim_end().rsplit(' ').next()?;
    let numbers = tid.parse::<u64>().is_ok() && time.parse::<f64>().is_ok();
    numbers.then(|| (tid.to_owned(), time.to_owned()))
}

/// How far two readings of the same recording agree.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    /// Samples that both have.
    pub(crate) samples: u64,
    /// Samples that only the other reading has.
    pub(crate) missing: u64,
    /// Frames with the same name, up to the length of the shorter chain.
    pub(crate) same: u64,
    /// Frames with different names (ours, theirs), and how often they occur.
    pub(crate) different: BTreeMap<(String, String), u64>,
    /// Samples with a longer chain in our reading.
    pub(crate) longer: u64,
    /// Samples with a longer chain in the other reading.
    pub(crate) shorter: u64,
    /// The first sample of which the chains are of different length: ours, theirs.
    pub(crate) first_uneven: Option<(Vec<String>, Vec<String>)>,
}

impl Agreement {
    /// Compares frames from the innermost one on. Unnamed frames at the end of a chain don't count: perf adds such a
    /// frame if it can't follow a chain further. `@plt` is perf's name for the stubs of functions chosen at load time,
    /// and doesn't count there either.
    pub(crate) fn new(ours: &Samples, theirs: &Samples) -> Self {
        let mut all = Self::default();
        for (key, theirs) in theirs {
            let ours = ours.get(key).map_or(&[][..], Vec::as_slice);
            all.missing += theirs.len().saturating_sub(ours.len()) as u64;
            for (ours, theirs) in ours.iter().zip(theirs) {
                all.sample(ours, theirs);
            }
        }
        all
    }

    fn sample(&mut self, ours: &[String], theirs: &[String]) {
        let is_nameless = |name: &str| ["[unknown]", "[truncated]", "@plt"].contains(&name);
        // A frame that perf calls `@plt` has a whole name in ours.
        let is_stub = |at: usize| theirs.get(at).is_some_and(|name| name == "@plt");
        let our_end = (0..ours.len()).rfind(|&at| !is_nameless(&ours[at]) && !is_stub(at)).map_or(0, |last| last + 1);
        let their_end = theirs.iter().rposition(|name| !is_nameless(name)).map_or(0, |last| last + 1);
        let (ours, theirs) = (&ours[..our_end], &theirs[..their_end]);
        self.samples += 1;
        self.longer += u64::from(ours.len() > theirs.len());
        self.shorter += u64::from(ours.len() < theirs.len());
        if ours.len() != theirs.len() {
            self.first_uneven.get_or_insert_with(|| (ours.to_vec(), theirs.to_vec()));
        }
        for (our, their) in ours.iter().zip(theirs) {
            if our == their {
                self.same += 1;
            } else {
                *self.different.entry((our.clone(), their.clone())).or_default() += 1;
            }
        }
    }

    /// Removes a known difference.
    pub(crate) fn explain(&mut self, ours: &str, theirs: &str) {
        self.different.remove(&(ours.to_owned(), theirs.to_owned()));
    }

    /// The share of compared frames with the same name, from 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        let different: u64 = self.different.values().sum();
        self.same as f64 / (self.same + different).max(1) as f64
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, missing, same, longer, shorter, .. } = self;
        let share = 100.0 * self.share();
        write!(f, "{samples} samples ({missing} missing), {same} frames alike, {share:.3} %; ")?;
        writeln!(f, "chains longer in ours {longer}, in theirs {shorter}")?;
        if let Some((ours, theirs)) = &self.first_uneven {
            writeln!(f, "  {} | {}", ours.join(";"), theirs.join(";"))?;
        }
        let mut kinds: Vec<_> = self.different.iter().collect();
        kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for ((ours, theirs), count) in kinds.into_iter().take(12) {
            let short = |name: &str| name.chars().take(90).collect::<String>();
            writeln!(f, "  {count:6}  {} | {}", short(ours), short(theirs))?;
        }
        Ok(())
    }
}
