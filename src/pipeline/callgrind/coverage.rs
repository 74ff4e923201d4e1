//! Determines how much of a callgrind file's cost is in JIT code, and which sources could name it. Makes the same two
//! passes as `jitgraft callgrind`, but writes nothing.

use super::names::CodeNames;
use super::stream::{self, NamedProfile};
use super::{HEAD, pid_in_name, processes};
use crate::error::{Error, Result, Warnings};
use crate::io::{InPath, map_open_file, open_rewindable};
use crate::model::Pid;
use crate::pipeline::Job;
use crate::records::callgrind::sniff;
use crate::sources::{Account, SourceOptions, find};
use std::io::{Read, Seek};
use std::path::Path;

/// Cost in JIT code, for the first event.
#[derive(Debug)]
pub(crate) struct Coverage {
    /// The process, if the file or its name contains the ID.
    pub(crate) pid: Option<Pid>,
    /// The first word of the command line.
    pub(crate) program: Vec<u8>,
    /// The name of the event.
    pub(crate) event: Vec<u8>,
    /// True if costs are recorded per instruction address.
    pub(crate) has_instr: bool,
    /// Self cost in memory without a file for which there are names.
    pub(crate) nameable: u64,
    /// Self cost in memory without a file for which there are none.
    pub(crate) unnameable: u64,
    /// What became of each source.
    pub(crate) accounts: Vec<Account>,
}

impl Coverage {
    /// Determines the coverage of a callgrind file.
    pub(crate) fn find(input: &InPath, options: &SourceOptions, job: &Job, warnings: &mut Warnings) -> Result<Self> {
        let mut file = open_rewindable(input)?;
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head)?;
        file.rewind()?;
        if !sniff(&head) {
            return Err(Error::new("is not a callgrind file"));
        }
        let text = map_open_file(file)?;
        let index = stream::index(&text, job)?;
        let path = input.path();
        let pid = index.header.pid.or_else(|| pid_in_name(path?)).map(Pid);
        let processes = pid.map(processes).unwrap_or_default();
        let beside =
            path.and_then(Path::parent).map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
        let found = find(&processes, options, beside, warnings);
        let loaded = found.load(&processes, &job.pool, warnings);
        let names = CodeNames::new(&loaded.map, pid.unwrap_or_default(), Vec::new(), &job.pool);
        let NamedProfile { stats, .. } = stream::rewrite(&text, &index, &names, &mut std::io::sink(), job)?;
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
