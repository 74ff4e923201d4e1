//! Compares two texts of `perf script`, frame by frame.

use std::collections::BTreeMap;
use std::fmt;

/// A sample's place in the recording: thread and time as printed.
pub(crate) type Key = (String, String);

/// The functions of each sample, innermost first, in the text's order.
pub(crate) type Samples = BTreeMap<Key, Vec<Vec<String>>>;

/// Reads what `perf script -F comm,tid,time,ip,sym,dso` prints: `comm tid time:`, then a line a frame.
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

/// `7f00 name+0x1c (/lib/libc.so.6)` → `name`
fn function(frame: &str) -> String {
    // `(/dev/zero (deleted))`
    let frame = &frame.replace(" (deleted))", ")");
    let name = frame.split_once(' ').map_or("", |(_, name)| name);
    let name = name.rsplit_once(" (").filter(|_| name.ends_with(')')).map_or(name, |(name, dso)| {
        // `(inlined)` is where the file would.
        if dso == "inlined)" { frame.split_once(' ').map_or("", |(_, name)| name) } else { name }
    });
    name.rsplit_once("+0x").map_or(name, |(name, _)| name).trim_end().to_owned()
}

/// `comm  tid  12.345678:`; names of threads may hold spaces.
fn key(line: &str) -> Option<Key> {
    let (rest, time) = line.trim_end().trim_end_matches(':').rsplit_once(' ')?;
    let tid = rest.trim_end().rsplit(' ').next()?;
    let numbers = tid.parse::<u64>().is_ok() && time.parse::<f64>().is_ok();
    numbers.then(|| (tid.to_owned(), time.to_owned()))
}

/// The agreement of two readings of one recording.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    /// Samples in both.
    pub(crate) samples: u64,
    /// Samples that only the other reading has.
    pub(crate) missing: u64,
    /// Frames with one name in both, over the shorter chain.
    pub(crate) same: u64,
    /// Frames with two names, and how often: (ours, theirs).
    pub(crate) different: BTreeMap<(String, String), u64>,
    /// Samples whose chain is longer in ours; in theirs.
    pub(crate) longer: u64,
    /// See [`Self::longer`].
    pub(crate) shorter: u64,
}

impl Agreement {
    /// Compares from the innermost frame on. The text that perf writes at the end of a chain that it could not follow,
    /// frames in no known file, is not a frame; nor is `@plt`, as perf calls the stubs of functions that are chosen at
    /// load time.
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
        let end = |frames: &[String]| {
            let nameless = |name: &String| ["[unknown]", "[truncated]", "@plt"].contains(&name.as_str());
            frames.iter().rposition(|name| !nameless(name)).map_or(0, |last| last + 1)
        };
        let (ours, theirs) = (&ours[..end(ours)], &theirs[..end(theirs)]);
        self.samples += 1;
        self.longer += u64::from(ours.len() > theirs.len());
        self.shorter += u64::from(ours.len() < theirs.len());
        for (our, their) in ours.iter().zip(theirs) {
            if our == their {
                self.same += 1;
            } else {
                *self.different.entry((our.clone(), their.clone())).or_default() += 1;
            }
        }
    }

    /// Takes out a difference that is understood.
    pub(crate) fn explain(&mut self, ours: &str, theirs: &str) {
        self.different.remove(&(ours.to_owned(), theirs.to_owned()));
    }

    /// The share of frames with one name.
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
        let mut kinds: Vec<_> = self.different.iter().collect();
        kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for ((ours, theirs), count) in kinds.into_iter().take(12) {
            let short = |name: &str| name.chars().take(90).collect::<String>();
            writeln!(f, "  {count:6}  {} | {}", short(ours), short(theirs))?;
        }
        Ok(())
    }
}
