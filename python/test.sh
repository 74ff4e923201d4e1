#!/usr/bin/env bash
# Tests the Python package as it is installed: a wheel of the command as `cargo test` has built it, in an environment of its
# own below target/, with what the tests need from PyPI. Spark runs on the Java that is here. Arguments go to pytest.
set -eu
cd "$(dirname "$0")"
environment=$PWD/../target/python
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
"$environment/bin/pip" install -q 'maturin>=1.9,<2' 'pytest>=8' 'pyarrow>=14' duckdb 'pyspark>=4' 'pandas>=2.2,<3' pytz
rm -rf "$environment/wheels"
"$environment/bin/maturin" build -q --profile dev --out "$environment/wheels"
"$environment/bin/pip" install -q --force-reinstall --no-deps "$environment"/wheels/*.whl
exec "$environment/bin/python" -m pytest -q -p no:cacheprovider "$@"
