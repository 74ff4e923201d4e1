//! Adds names to profiles that have addresses only, in memory.

use super::code_map::CodeMap;
use crate::contract::unsymbolized::OpenUnsymbolized;
use crate::error::{Error, ErrorKind, Result, Warning, Warnings};
use crate::model::Pid;
use crate::parallel::Pool;
use crate::pipeline::Job;
use crate::pipeline::bare_addresses::Answers;
use crate::pipeline::callgrind::{CodeNames, IndexedProfile};
use crate::pipeline::open::Input;
use crate::pipeline::repack::compress;
use std::io::Write;

/// A profile with names added ([`add_names`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NamedFile {
    /// The profile, in the same format and compressed in the same way as before.
    pub bytes: Vec<u8>,
    /// How many addresses or functions got a name.
    pub named: u64,
    /// What was skipped or is uncertain.
    pub warnings: Vec<Warning>,
}

/// Adds the names of JIT code to a profile that has addresses without names: bytes in, bytes out.
///
/// Reads pprof, OpenTelemetry's and the Firefox Profiler's profiles, and callgrind files. Everything that has a name
/// keeps it, and so do addresses in files. These formats have no times, or none of the code map's clock: an address
/// gets the name of the last code that was there.
///
/// `process` is the process of addresses for which the profile doesn't state one. If that is `None`, too, they get
/// names only if all code in the map is of one process.
///
/// An OpenTelemetry profile:
///
/// ```
/// use jitgraft::{Addr, CodeMap, Frame, LoadOptions, Pid, ProfileBuilder, Sample, add_names, load_bytes};
///
/// let mut builder = ProfileBuilder::new();
/// builder.add(Sample::new("cpu", 5), [Frame::unnamed(Addr(0x1_0010))]);
/// let profiler_wrote: Vec<u8> = builder.build()?.to_bytes("otlp")?;
///
/// let code_map = CodeMap::from_perf_map(b"10000 40 compiled\n", Pid(77))?;
/// let named = add_names(&profiler_wrote, &code_map, None)?;
/// let profile = load_bytes(named.bytes, &LoadOptions::new())?;
/// let leaves = profile.samples().map(|sample| sample.frames().next().unwrap().to_string());
/// assert_eq!((leaves.collect::<Vec<_>>(), named.named), (vec!["compiled".to_owned()], 1));
/// # Ok::<(), jitgraft::Error>(())
/// ```
///
/// A callgrind file, whose process is in its header:
///
/// ```
/// use jitgraft::{CodeMap, Pid, add_names};
///
/// let text = b"# callgrind format\nversion: 1\ncreator: callgrind-3.22\npid: 77\ncmd: php\npart: 1\n\
///     positions: instr line\nevents: Ir\n\nob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000010000\n0x10000 0 100\n";
/// let code_map = CodeMap::from_perf_map(b"10000 40 compiled\n", Pid(77))?;
/// let named = add_names(text, &code_map, None)?;
/// assert!(String::from_utf8_lossy(&named.bytes).contains("compiled\n0x10000 0 100\n"));
/// # Ok::<(), jitgraft::Error>(())
/// ```
pub fn add_names(profile: &[u8], code_map: &CodeMap, process: Option<Pid>) -> Result<NamedFile> {
    add_names_to(profile, code_map, process).map_err(Error::without_stdin)
}

/// Detects the format of the profile, and adds names in the way that the format needs. Fails if names can't be added to
/// a profile of this format in memory. Errors call the profile standard input.
fn add_names_to(profile: &[u8], code_map: &CodeMap, process: Option<Pid>) -> Result<NamedFile> {
    let input = Input::from_bytes(profile.to_vec())?;
    match input.format.rewriter {
        Some(rewriter) if rewriter.command == "callgrind" => name_callgrind(&input, code_map, process),
        Some(rewriter) => match rewriter.open {
            Some(open) => name_addresses(&input, open, code_map, process),
            None => Err(unsupported(input.format.name)),
        },
        None => Err(unsupported(input.format.name)),
    }
}

/// The error for a profile in a format that [`add_names`] can't change.
fn unsupported(format: &str) -> Error {
    let message = format!("add_names does not support {format}");
    Error::new(message).with_kind(ErrorKind::InvalidArgument)
}

/// The only process with code in the map; `None` if there are several or none.
fn only_process(code_map: &CodeMap) -> Option<Pid> {
    let mut processes = code_map.processes();
    let only = processes.next()?;
    if processes.next().is_some() { None } else { Some(only) }
}

/// Adds names to a callgrind file, for the code of one process: the one that the caller stated, that the file's header
/// states, or the only one with code in the map. Fails if none of these is known.
fn name_callgrind(input: &Input, code_map: &CodeMap, process: Option<Pid>) -> Result<NamedFile> {
    let job = Job { pool: Pool::new(None)?, quiet: true, verbose: false, strict: false };
    let indexed = IndexedProfile::read(&input.bytes, &job)?;
    let Some(pid) = process.or(indexed.header().pid.map(Pid)).or_else(|| only_process(code_map)) else {
        let message = "does not say which process was profiled; pass its process ID to add_names";
        return Err(Error::new(message).with_kind(ErrorKind::InvalidArgument));
    };
    let borrowed = code_map.to_borrowed();
    // In a callgrind file, functions are listed by the object file that contains them. JIT code is listed under this
    // name, although there is no such file.
    let names = CodeNames::new(&borrowed, pid, format!("jitted-{pid}.elf").into_bytes(), &job.pool);
    let mut warnings = Vec::new();
    if names.is_empty() {
        warnings.push(Warning::new(format!("the code map has no code of process {pid}")));
    }
    let mut bytes = Vec::new();
    let mut named = 0;
    compress(&input.wrappings, &mut bytes, &mut |out: &mut dyn Write| {
        named = indexed.rewrite(&names, out, &job)?.functions as u64;
        Ok(())
    })?;
    Ok(NamedFile { bytes, named, warnings })
}

/// Adds names to the unnamed addresses of a profile in another format, which `open` parses.
fn name_addresses(
    input: &Input,
    open: OpenUnsymbolized,
    code_map: &CodeMap,
    process: Option<Pid>,
) -> Result<NamedFile> {
    let mut warnings = Warnings::new();
    let mut profile = open(&input.bytes, &mut warnings)?;
    let process = process.or_else(|| only_process(code_map));
    let borrowed = code_map.to_borrowed();
    let answers = Answers::find(&*profile, &borrowed, process, None, &Pool::new(None)?, &mut warnings);
    let mut bytes = Vec::new();
    let write = &mut |out: &mut dyn Write| profile.write(&|address| answers.calls(address), out);
    compress(&input.wrappings, &mut bytes, write)?;
    warnings.extend(answers.counts.warnings("pass its process ID to add_names"));
    Ok(NamedFile { bytes, named: answers.counts.named, warnings: warnings.iter().cloned().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::open::Wrapping;
    use crate::{Addr, Frame, LoadOptions, ProfileBuilder, Sample, load_bytes};

    #[test]
    fn a_compressed_profile_gets_names_and_stays_compressed() {
        let mut builder = ProfileBuilder::new();
        builder.add(Sample::new("cpu", 5), [Frame::unnamed(Addr(0x1_0010))]);
        let plain = builder.build().unwrap().to_bytes("otlp").unwrap();
        let mut compressed = Vec::new();
        compress(&[Wrapping::Gzip], &mut compressed, &mut |out: &mut dyn Write| Ok(out.write_all(&plain)?)).unwrap();

        let code_map = CodeMap::from_perf_map(b"10000 40 compiled\n", Pid(77)).unwrap();
        let named = add_names(&compressed, &code_map, None).unwrap();
        assert_eq!((named.named, &named.bytes[..2]), (1, &b"\x1f\x8b"[..]));
        let profile = load_bytes(named.bytes, &LoadOptions::new()).unwrap();
        let leaf = profile.samples().next().unwrap().frames().next().unwrap().to_string();
        assert_eq!(leaf, "compiled");
    }

    #[test]
    fn formats_whose_addresses_stay_unnamed_are_refused() {
        let code_map = CodeMap::builder().build().unwrap();
        let error = add_names(b"main;parse 3\n", &code_map, None).unwrap_err();
        assert_eq!((error.kind(), error.file()), (ErrorKind::InvalidArgument, None));
    }
}
