//! The entries of runtimes, code by code, for those who report compilations: the code map has only what was where.

use super::discover::Found;
use crate::model::process::Processes;
use crate::parallel::Pool;
use crate::resolve::code_map::ListedCode;

impl Found {
    /// Shows each code range that the sources report, and each move, source by source in its own order. The sources are
    /// read once more; what is wrong with them was reported when they were loaded.
    pub fn each_code(&self, processes: &Processes, pool: &Pool, mut each: impl FnMut(&ListedCode<'_>)) {
        let read = self.read(processes, pool);
        read.iter().for_each(|read| read.list.iter().for_each(|code| each(&code)));
    }
}
