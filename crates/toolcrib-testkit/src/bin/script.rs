//! `toolcrib-script`: the native scripted stdio server; see the library's module `script`.

use toolcrib_testkit::script;

fn main() -> std::io::Result<()> {
    let script = script::Script::from_args(std::env::args().skip(1))
        .map_err(|why| std::io::Error::new(std::io::ErrorKind::InvalidInput, why))?;
    script.serve()
}
