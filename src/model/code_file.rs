//! The files that JIT code is said to be in. JIT code is in no file, but profilers show a module for every function,
//! and recognize JIT code by its module.
//!
//! perf shows the perf map of the process (`/tmp/perf-PID.map`) until the recording is injected, and then the ELF image
//! that was made of the code: `jitted-PID-INDEX.so` by perf, `jitted-PID.so` and `jitted-PID.2.so` by jitgraft.

use super::Pid;
use super::mapping_kind::base_name;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The file name of the ELF image that `inject` makes of the code of a process. A process may have several images,
/// numbered from 1.
pub fn image_name(pid: Pid, number: u32) -> String {
    if number == 1 { format!("jitted-{pid}.so") } else { format!("jitted-{pid}.{number}.so") }
}

/// The file name of the ELF object that `callgrind` makes of the code of a process.
pub fn object_name(pid: Pid) -> String {
    format!("jitted-{pid}.elf")
}

/// Where a process writes its perf map.
pub fn perf_map(pid: Pid) -> Vec<u8> {
    format!("/tmp/perf-{pid}.map").into_bytes()
}

/// The file to show as the module of a process's JIT code. If a jitdump reported the code, it is the image that
/// `inject` makes of it, in `directory`; otherwise the perf map. Neither file need exist.
pub fn code_file(pid: Pid, is_dumped: bool, directory: &Path) -> Vec<u8> {
    if is_dumped { OsString::from(directory.join(image_name(pid, 1))).into_vec() } else { perf_map(pid) }
}

/// The process whose code is in an image of JIT code, given the image's path, such as `jitted-PID-1.so`. The outer
/// `None` means that the path isn't that of such an image, the inner one that it contains no process ID.
pub fn image_process(path: &[u8]) -> Option<Option<Pid>> {
    let name = base_name(path).strip_prefix(b"jitted-")?.strip_suffix(b".so")?;
    // The rest of the name must be numbers, the first of which is the process ID.
    if !name.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.')) {
        return Some(None);
    }
    let digits = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let pid = std::str::from_utf8(&name[..digits]).ok().and_then(|digits| digits.parse().ok());
    Some(pid.map(Pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_jit_code_show_their_process() {
        for (number, name) in [(1, "jitted-77.so"), (2, "jitted-77.2.so")] {
            assert_eq!(image_name(Pid(77), number), name);
            assert_eq!(image_process(name.as_bytes()), Some(Some(Pid(77))));
        }
        assert_eq!(image_process(b"/x/jitted-77-3.so"), Some(Some(Pid(77))));
        assert_eq!(image_process(b"/x/jitted-x.so"), Some(None));
        assert_eq!(image_process(b"/x/libjitted-77.so"), None);
        assert_eq!(image_process(b"/x/jitted-77.elf"), None);
    }
}
