//! The table of readers. None shares code with the writers, or with the readers of the program.

use super::told::{Frame, Stack, Told};
use super::{callgrind, chrome, csv, firefox, flamegraph, json, otlp, pprof, speedscope};

/// The way the output of a writer is read back.
pub(crate) struct Reader {
    /// The writer.
    pub(crate) writer: &'static str,
    /// The whole output and the names of the events → what it reports each event, in order.
    pub(crate) read: fn(&[u8], &[String]) -> Vec<Told>,
    /// The arguments with which nothing is left out of a picture.
    pub(crate) arguments: &'static [&'static str],
    /// True if functions are compared by name and module, or by name alone: how the format distinguishes them.
    pub(crate) by_module: bool,
    /// True if stacks begin with the thread's name.
    pub(crate) thread_roots: bool,
    /// True if weights and numbers of samples stand side by side, so that nobody need ask for either.
    pub(crate) both: bool,
}

const READERS: &[Reader] = &[
    Reader {
        writer: "chrome",
        read: chrome::read,
        arguments: &["export", "--to", "chrome"],
        by_module: true,
        thread_roots: false,
        both: false,
    },
    Reader {
        writer: "callgrind",
        read: callgrind::read,
        arguments: &["export", "--to", "callgrind"],
        by_module: true,
        thread_roots: false,
        both: false,
    },
    Reader {
        writer: "folded",
        read: folded,
        arguments: &["export", "--to", "folded"],
        by_module: false,
        thread_roots: true,
        both: false,
    },
    Reader {
        writer: "flamegraph",
        read: flamegraph::read,
        arguments: &["flamegraph", "--minwidth", "0", "--by", "comm"],
        by_module: false,
        thread_roots: true,
        both: false,
    },
    Reader {
        writer: "firefox",
        read: firefox::read,
        arguments: &["export", "--to", "firefox"],
        by_module: true,
        thread_roots: false,
        both: false,
    },
    Reader {
        writer: "speedscope",
        read: speedscope::read,
        arguments: &["export", "--to", "speedscope"],
        by_module: false,
        thread_roots: false,
        both: false,
    },
    Reader {
        writer: "pprof",
        read: pprof::read,
        arguments: &["export", "--to", "pprof"],
        by_module: true,
        thread_roots: false,
        both: true,
    },
    Reader {
        writer: "otlp",
        read: otlp::read,
        arguments: &["export", "--to", "otlp"],
        by_module: true,
        thread_roots: false,
        both: true,
    },
    Reader {
        writer: "otlp-json",
        read: otlp::read_json,
        arguments: &["export", "--to", "otlp-json"],
        by_module: true,
        thread_roots: false,
        both: true,
    },
    Reader {
        writer: "json",
        read: json::read,
        arguments: &["export", "--to", "json"],
        by_module: true,
        thread_roots: false,
        both: true,
    },
    Reader {
        writer: "csv",
        read: csv::read,
        arguments: &["export", "--to", "csv"],
        by_module: false,
        thread_roots: false,
        both: true,
    },
    #[cfg(feature = "tables")]
    Reader {
        writer: "parquet",
        read: super::parquet::read,
        arguments: &["export", "--to", "parquet"],
        // They leave out where a dump was.
        by_module: false,
        thread_roots: false,
        both: true,
    },
    #[cfg(feature = "tables")]
    Reader {
        writer: "arrow",
        read: super::arrow::read,
        arguments: &["export", "--to", "arrow"],
        // They leave out where a dump was.
        by_module: false,
        thread_roots: false,
        both: true,
    },
];

pub(crate) fn reader_of(writer: &str) -> Option<&'static Reader> {
    READERS.iter().find(|reader| reader.writer == writer)
}

/// Folded stacks: frames joined by `;`, a blank, the weight; the first frame is the thread's name.
fn folded(text: &[u8], _: &[String]) -> Vec<Told> {
    let text = std::str::from_utf8(text).unwrap();
    let stacks = text.lines().map(|line| {
        let (names, weight) = line.rsplit_once(' ').unwrap();
        let frames = names.split(';').map(|name| Frame { name: name.to_owned(), module: None }).collect();
        Stack { frames, weight: weight.parse().unwrap() }
    });
    vec![Told { stacks: stacks.collect(), ..Told::default() }]
}
