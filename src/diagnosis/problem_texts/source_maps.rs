//! The texts about source maps.

use super::entry::{ANY, PART, ProblemText};
use super::text::text;

pub(super) fn missing(script: &str) -> ProblemText {
    ProblemText {
        key: "source-map-missing",
        about: "minified JavaScript ran, and no [source map](recipes.md#source-maps-authored-names-for-bundled-javascript) was found for it",
        threshold: PART,
        cause: format!("{} is minified and has no source map: its functions have generated names", text(script)),
        remedy: "let the build write a source map (esbuild --sourcemap; webpack devtool: 'source-map'; rollup output.sourcemap; \
                 Vite build.sourcemap; tsc sourceMap; swc, Babel sourceMaps; terser --source-map), or pass it with \
                 --source-maps FILE=SCRIPT"
            .to_owned(),
    }
}

pub(super) fn misfit(script: &str, map: &str, why: &str) -> ProblemText {
    ProblemText {
        key: "source-map-misfit",
        about: "a script's source map can't be read, belongs to another build, or the script isn't the one that ran",
        threshold: ANY,
        cause: format!("the source map {} of {} is not used: {}", text(map), text(script), text(why)),
        remedy: "keep script and map of the build that was recorded, and pass them with --source-maps FILE=SCRIPT and --symfs DIR"
            .to_owned(),
    }
}
