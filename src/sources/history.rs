//! What runtimes wrote down, code by code, for those who tell of compilations: the code map knows only what was where.

use super::discover::Found;
use super::load::read;
use crate::model::code::OriginId;
use crate::model::process::Processes;
use crate::parallel::Pool;
use crate::resolve::code_map::ListedCode;

impl Found {
    /// Shows each piece of code that the sources tell of, and each move, source by source in its own order. The sources
    /// are read once more; what is wrong with them was said when they were loaded.
    pub fn each_code(&self, processes: &Processes, pool: &Pool, mut each: impl FnMut(&ListedCode<'_>)) {
        let sources = self.files.iter().enumerate().collect();
        let lists = pool.map(sources, |(at, source)| read(OriginId(at as u32), source, processes, &self.options).list);
        lists.iter().for_each(|list| list.iter().for_each(|code| each(&code)));
    }
}
