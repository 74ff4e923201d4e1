//! Samples as comma-separated values, for spreadsheets and databases. There is a header line and then one line per
//! sample, or per sum if the input only has sums.
//!
//! | column | contents |
//! |---|---|
//! | `event`, `unit` | the event and the unit of its weights |
//! | `comm`, `pid`, `tid`, `cpu` | the thread and CPU of the sample |
//! | `time_ns` | the time in nanoseconds on the recording's clock |
//! | `weight`, `count` | the weight in the unit above, and the number of samples |
//! | `function`, `module`, `kind`, `tier` | the innermost frame; `function` is the name that `report` shows, with the location where it starts if several functions have the name |
//! | `stack` | all functions, outermost first, joined by `;`, spelled as in folded stacks |
//!
//! Unknown values are empty. Cells are quoted as in RFC 4180, but lines end with LF. Spreadsheets can't mistake a cell
//! for a formula ([`csv_cell`]). In DuckDB:
//!
//! ```sql
//! SELECT function, sum(weight) FROM 'profile.csv' GROUP BY ALL ORDER BY 2 DESC;
//! ```

use crate::analysis::category::Category;
use crate::analysis::label;
use crate::analysis::label::{Annotate, LabelStyle};
use crate::analysis::namesakes::Namesakes;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::printable::csv_cell;
use crate::model::stacks::{Frame, FrameId, Profile, Row, Series, TrackId, UNKNOWN, Weight};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::Write;

const COLUMNS: &str = "event,unit,comm,pid,tid,cpu,time_ns,weight,count,function,module,kind,tier,stack";

/// Writes all events of a profile.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{COLUMNS}")?;
    let mut cells = Cells {
        profile,
        annotate: options.annotate,
        namesakes: Namesakes::new(profile),
        categories_known: Category::are_known(profile),
        labels: FxHashMap::default(),
        threads: FxHashMap::default(),
    };
    for series in &profile.series {
        let event = event_columns(series);
        for (row, weight) in series.signed_rows(Weight::Period) {
            cells.write_line(&event, row, weight, out)?;
        }
    }
    Ok(())
}

/// The cells of the columns `event` and `unit`, which are the same for all rows of an event.
fn event_columns(series: &Series) -> String {
    format!("{},{}", csv_cell(series.name.as_bytes()), csv_cell(series.unit.name().as_bytes()))
}

/// Caches the text of cells that several rows share.
struct Cells<'a> {
    profile: &'a Profile,
    annotate: Annotate,
    namesakes: Namesakes,
    /// See [`Category::are_known`].
    categories_known: bool,
    /// The label of each frame, as it is in the threads of Java programs (true) or in other threads (false): the rules
    /// for Java names change labels.
    labels: FxHashMap<(FrameId, bool), String>,
    threads: FxHashMap<TrackId, ThreadColumns>,
}

/// The columns `comm`, `pid`, `tid` and `cpu` of a thread.
#[derive(Clone)]
struct ThreadColumns {
    text: String,
    /// Whether the rules for Java names apply to the thread's functions.
    is_java: bool,
}

impl Cells<'_> {
    /// Writes the line of a row. `event` has the text of the first two cells, which all rows of an event share.
    fn write_line(&mut self, event: &str, row: &Row, weight: i64, out: &mut dyn Write) -> Result<()> {
        let profile = self.profile;
        let thread = self.threads.entry(row.track).or_insert_with(|| ThreadColumns::new(profile, row.track)).clone();
        // `frames_up` yields the innermost frame first.
        let mut frames: Vec<FrameId> = profile.frames_up(row.stack).collect();
        let leaf = frames.first().copied();
        frames.reverse();
        let mut stack = String::new();
        for &frame in &frames {
            if !stack.is_empty() {
                stack.push(';');
            }
            // In threads of Java programs, labels follow the rules for Java names.
            stack.push_str(self.label(frame, thread.is_java));
        }
        let (time, count) = (OptionalNumber(row.time.map(|time| time.0)), row.count);
        let leaf_columns = match leaf {
            Some(leaf) => self.leaf_columns(leaf),
            None => ",,,".to_owned(), // four empty cells
        };
        let stack = csv_cell(stack.as_bytes());
        Ok(writeln!(out, "{event},{},{time},{weight},{count},{leaf_columns},{stack}", thread.text)?)
    }

    fn label(&mut self, frame: FrameId, is_java: bool) -> &str {
        let (profile, annotate, namesakes) = (self.profile, self.annotate, Some(&self.namesakes));
        let style = LabelStyle { java: is_java, annotate, namesakes, ..LabelStyle::default() };
        self.labels.entry((frame, is_java)).or_insert_with(|| label::label(profile, profile.frame_of(frame), style))
    }

    /// The columns of the innermost function: `function`, `module`, `kind` and `tier`.
    fn leaf_columns(&self, leaf: FrameId) -> String {
        let frame: &Frame = self.profile.frame_of(leaf);
        let module = frame.module.map_or(&[][..], |module| self.profile.name_of(module));
        let tier = frame.tier.map_or("", |tier| tier.name());
        // The tier has its own column, so it is left out of the kind.
        let kind = csv_cell(Category::for_table(frame, self.categories_known).without_tier().name().as_bytes());
        // `namesakes` has a location if another function has the same name.
        let function = match (self.profile.name_of(frame.name), self.namesakes.location(frame)) {
            // A function without a name is labeled with its module.
            (UNKNOWN, _) => Cow::Owned(label::unnamed_at(self.profile, frame, self.annotate).into_bytes()),
            (name, Some(location)) => Cow::Owned([name, b" (", location.as_bytes(), b")"].concat()),
            (name, None) => Cow::Borrowed(name),
        };
        let function = csv_cell(&function);
        format!("{function},{},{kind},{tier}", csv_cell(module))
    }
}

impl ThreadColumns {
    fn new(profile: &Profile, id: TrackId) -> Self {
        let track = profile.track_of(id);
        let (pid, tid) = (OptionalNumber(track.pid.map(|pid| pid.0)), OptionalNumber(track.tid.map(|tid| tid.0)));
        let text = format!("{},{pid},{tid},{}", csv_cell(&track.comm), OptionalNumber(track.cpu));
        Self { text, is_java: label::is_java(&track.comm) }
    }
}

/// A number that is written as an empty cell if it is `None`.
struct OptionalNumber<T>(Option<T>);

impl<T: Display> Display for OptionalNumber<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{FrameKind, Track, Unit};
    use crate::model::tier::Tier;
    use crate::model::{Nanos, Pid, Tid};

    #[test]
    fn a_sample_is_a_line_and_no_name_breaks_it() {
        let mut profile = Profile::new();
        let comm = b"say \"a, b\"".to_vec();
        let track = profile.track(Track { comm, pid: Some(Pid(7)), tid: Some(Tid(-1)), ..Track::default() });
        let mut stack = None;
        for (name, tier) in [(&b"=f(x)\n"[..], None), (b"a;b\x1b", Some(Tier::Optimized))] {
            let name = profile.name(name);
            let module = Some(profile.name(b"/x/jitted-7.so"));
            let frame = profile.frame(Frame { module, tier, ..Frame::new(name, FrameKind::Jit) });
            stack = Some(profile.stack(stack, frame));
        }
        let series = profile.series_named("cycles", Unit::Named("cycles".to_owned()));
        profile.push(series, Row { track, stack, weight: 12, count: 1, time: Some(Nanos(99)) });
        profile.push(series, Row { track, stack: None, weight: 3, count: 2, time: None });
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        let expected = "event,unit,comm,pid,tid,cpu,time_ns,weight,count,function,module,kind,tier,stack\n\
            cycles,cycles,\"say \"\"a, b\"\"\",7,-1,,99,12,1,a;b\\x1b,/x/jitted-7.so,JIT,optimized,'=f(x) ;a:b\\x1b\n\
            cycles,cycles,\"say \"\"a, b\"\"\",7,-1,,,3,2,,,,,\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
