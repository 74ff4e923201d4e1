//! Determines how much of a callgrind file's cost is in JIT code, and how much of that could be named. Makes the same
//! two passes as `jitgraft callgrind`, but writes nothing.

use super::names::CodeNames;
use super::passes::{self, NamedProfile};
use super::{HEAD, directory, pid_in_name, processes};
use crate::error::{Error, Result, Warnings};
use crate::formats::callgrind::sniff;
use crate::io::{InPath, map_open_file, open_rewindable};
use crate::jit::{Account, SourceOptions, find};
use crate::model::Pid;
use crate::pipeline::Job;
use std::io::{Read, Seek};

/// How much cost in JIT code could be named, for the first event of a callgrind file.
#[derive(Debug)]
pub(crate) struct Coverage {
    /// The process, if its ID is in the file or in the file's name.
    pub(crate) pid: Option<Pid>,
    /// The program: the first word of the command line.
    pub(crate) program: Vec<u8>,
    /// The name of the event.
    pub(crate) event: Vec<u8>,
    /// True if costs are recorded per instruction address.
    pub(crate) has_instr: bool,
    /// The self cost in memory without a file (JIT code) for which sources have names.
    pub(crate) nameable: u64,
    /// The self cost in memory without a file for which no source has a name.
    pub(crate) unnameable: u64,
    /// How each source of JIT code, such as a perf map, was used.
    pub(crate) accounts: Vec<Account>,
}

impl Coverage {
    /// Determines the coverage of a callgrind file. `options` says where to find sources.
    pub(crate) fn find(input: &InPath, options: &SourceOptions, job: &Job, warnings: &mut Warnings) -> Result<Self> {
        let mut file = open_rewindable(input)?;
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head)?;
        file.rewind()?;
        if !sniff(&head) {
            return Err(Error::new("is not a callgrind file"));
        }
        let text = map_open_file(file)?;
        let index = passes::index(&text, job)?;
        let path = input.path();
        let pid = index.header.pid.or_else(|| pid_in_name(path?)).map(Pid);
        let processes = pid.map(processes).unwrap_or_default();
        let found = find(&processes, options, path.and_then(directory), warnings);
        let loaded = found.load(&processes, &job.pool, warnings);
        let names = CodeNames::new(&loaded.map, pid.unwrap_or_default(), Vec::new(), &job.pool);
        let NamedProfile { stats, .. } = passes::rewrite(&text, &index, &names, &mut std::io::sink(), job)?;
        let header = index.header;
        let program = header.command.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
        Ok(Self {
            pid,
            program: program.unwrap_or_default().to_vec(),
            event: header.events.first().cloned().unwrap_or_default(),
            has_instr: header.has_instr,
            nameable: stats.named_cost,
            unnameable: stats.unnamed_cost,
            accounts: loaded.accounts,
        })
    }
}
