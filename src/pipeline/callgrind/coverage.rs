//! Determines how much of a callgrind file's cost is in JIT code, and how much of that could be named. Makes the same
//! two passes as `jitgraft callgrind`, but writes nothing.

use super::names::CodeNames;
use super::passes::{IndexedProfile, NamedProfile};
use super::{CodeSources, find_pid, read_head};
use crate::error::{Error, Result, Warnings};
use crate::formats::callgrind::sniff;
use crate::io::{InPath, map_open_file, open_rewindable};
use crate::jit::{Account, SourceOptions};
use crate::model::Pid;
use crate::pipeline::Job;

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
    /// The self cost in memory that no file backs (JIT code), as far as sources can name the functions there.
    pub(crate) nameable: u64,
    /// The rest of the self cost in such memory: no source can name it.
    pub(crate) unnameable: u64,
    /// How each source of JIT code, such as a perf map, was used.
    pub(crate) accounts: Vec<Account>,
}

impl Coverage {
    /// Determines how much of a callgrind file's cost is in unnamed JIT code, and how much of this could be named.
    /// `options` says where to find sources.
    pub(crate) fn find(input: &InPath, options: &SourceOptions, job: &Job, warnings: &mut Warnings) -> Result<Self> {
        let mut file = open_rewindable(input)?;
        if !sniff(&read_head(&mut file)?) {
            return Err(Error::new("is not a callgrind file"));
        }
        let text = map_open_file(file)?;
        let profile = IndexedProfile::read(&text, job)?;
        let header = profile.header();
        let pid = find_pid(header.pid, input.path());
        let sources = CodeSources::find(pid, input.path(), options, warnings);
        let loaded = sources.load(&job.pool, warnings);
        // Rewriting the file with names counts the costs that get a name and those that don't. Only these counts are
        // needed. The output is dropped, so the name of the object file doesn't matter.
        let names = CodeNames::new(&loaded.map, sources.pid, Vec::new(), &job.pool);
        let NamedProfile { stats, .. } = profile.rewrite(&names, &mut std::io::sink(), job)?;
        // The program is the first word of the command line.
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
