//! A native scripted stdio server: as little work per message as possible, for measurements, and
//! the bombs that a Python server would be too slow to build.
//!
//! Pages are rendered once at start; after that a request costs one parse and one write. Blocking,
//! one thread, no runtime. It serves tools only and offers no change notifications.

use std::{
    borrow::Cow,
    fmt::Write as _,
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    os::fd::AsFd as _,
    path::PathBuf,
    process::Command,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolcrib_core::{
    rpc::method,
    version::{Era, Version},
};

/// Text that tries to steer a terminal and to hide; part of each name under `--ansi-names`.
pub const ANSI: &str = "\u{1b}[31m\u{1b}]0;owned\u{7}\u{202e}";

/// What the server does; each field is a flag of `toolcrib-script`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// `--tools N`: how many tools.
    pub tools: usize,
    /// `--page P`: tools a page; all in one when 0.
    pub page: usize,
    /// `--era modern|legacy|dual`: `None` is dual.
    pub era: Option<Era>,
    /// `--schema simple|none`: false leaves `inputSchema` out.
    pub schema: bool,
    /// `--delay-ms N`: wait before each answer.
    pub delay: Duration,
    /// `--start-ms N`: wait before the first request is read.
    pub start: Duration,
    /// `--endless-cursor`: each page brings new tools and a new cursor, for ever.
    pub endless_cursor: bool,
    /// `--page-bytes N`: the first description fills each page up to N bytes, on one line.
    pub page_bytes: usize,
    /// `--no-newline`: such a page is never ended.
    pub no_newline: bool,
    /// `--depth N`: the first tool's schema nests this deep.
    pub depth: usize,
    /// `--ansi-names`: names carry terminal escapes and a bidirectional override.
    pub ansi_names: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            tools: 10,
            page: 0,
            era: None,
            schema: true,
            delay: Duration::ZERO,
            start: Duration::ZERO,
            endless_cursor: false,
            page_bytes: 0,
            no_newline: false,
            depth: 0,
            ansi_names: false,
        }
    }
}

impl Script {
    /// Reads the flags.
    ///
    /// # Errors
    /// A flag is unknown, or its value is missing or odd.
    pub fn from_args(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut script = Self::default();
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
            let number = |text: String| text.parse::<usize>().map_err(|e| format!("{flag}: {e}"));
            let wait = |text: String| {
                text.parse().map(Duration::from_millis).map_err(|e| format!("{flag}: {e}"))
            };
            match flag.as_str() {
                "--tools" => script.tools = number(value()?)?,
                "--page" => script.page = number(value()?)?,
                "--era" => script.era = era(&value()?)?,
                "--schema" => script.schema = schema(&value()?)?,
                "--delay-ms" => script.delay = wait(value()?)?,
                "--start-ms" => script.start = wait(value()?)?,
                "--endless-cursor" => script.endless_cursor = true,
                "--page-bytes" => script.page_bytes = number(value()?)?,
                "--no-newline" => script.no_newline = true,
                "--depth" => script.depth = number(value()?)?,
                "--ansi-names" => script.ansi_names = true,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(script)
    }

    /// Serves standard input and output until the input ends.
    ///
    /// # Errors
    /// The pipe failed; a peer that left is no error.
    pub fn serve(&self) -> io::Result<()> {
        // Standard output as a plain file: no lock, no search for newlines.
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let mut server = Server { script: self, pages: self.pages(), out, buffer: Vec::new() };
        std::thread::sleep(self.start);
        let mut input = BufReader::with_capacity(64 << 10, io::stdin().lock());
        let mut line = Vec::new();
        loop {
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            match server.answer(&line) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                done => done?,
            }
        }
    }

    /// The members of each page's result, without the braces.
    fn pages(&self) -> Vec<String> {
        let size = if self.page == 0 { self.tools.max(1) } else { self.page };
        let count = self.tools.div_ceil(size).max(1);
        (0..count)
            .map(|page| {
                let from = page * size;
                let to = self.tools.min(from + size);
                let next = (page + 1 < count).then_some(page + 1);
                self.render(from..to, next)
            })
            .collect()
    }

    fn render(&self, tools: std::ops::Range<usize>, next: Option<usize>) -> String {
        let mut out = String::from("\"tools\":[");
        let first = tools.start;
        for index in tools {
            if index > first {
                out.push(',');
            }
            self.push_tool(&mut out, index, index == first);
        }
        out.push(']');
        if let Some(next) = next {
            let _ = write!(out, r#","nextCursor":"{next}""#);
        }
        out
    }

    fn push_tool(&self, out: &mut String, index: usize, first: bool) {
        let escape = if self.ansi_names {
            serde_json::to_string(ANSI).unwrap_or_default().trim_matches('"').to_owned()
        } else {
            String::new()
        };
        let _ = write!(out, r#"{{"name":"tool_{index}{escape}","description":""#);
        if first && self.page_bytes > 0 {
            out.extend(std::iter::repeat_n('x', self.page_bytes));
        } else {
            let _ = write!(out, "Reads record {index} of the archive and returns it as text.");
        }
        out.push('"');
        if first && self.depth > 0 {
            out.push_str(r#","inputSchema":{"type":"object","properties":"#);
            out.push_str(&r#"{"a":{"properties":"#.repeat(self.depth));
            out.push_str("{}");
            out.push_str(&"}}".repeat(self.depth));
            out.push('}');
        } else if self.schema {
            out.push_str(concat!(
                r#","inputSchema":{"type":"object","properties":{"#,
                r#""id":{"type":"integer","description":"Record number","minimum":1},"#,
                r#""format":{"type":"string","enum":["plain","markdown"]},"#,
                r#""limit":{"type":"integer","default":10}},"required":["id"]},"#,
                r#""annotations":{"readOnlyHint":true}"#
            ));
        }
        out.push('}');
    }
}

fn era(text: &str) -> Result<Option<Era>, String> {
    match text {
        "modern" => Ok(Some(Era::Modern)),
        "legacy" => Ok(Some(Era::Legacy)),
        "dual" => Ok(None),
        _ => Err(format!("--era is modern, legacy or dual, not {text}")),
    }
}

fn schema(text: &str) -> Result<bool, String> {
    match text {
        "simple" => Ok(true),
        "none" => Ok(false),
        _ => Err(format!("--schema is simple or none, not {text}")),
    }
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    cursor: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta", default)]
    meta: Meta<'a>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

struct Server<'a> {
    script: &'a Script,
    pages: Vec<String>,
    out: File,
    buffer: Vec<u8>,
}

impl Server<'_> {
    fn answer(&mut self, line: &[u8]) -> io::Result<()> {
        let Ok(request) = serde_json::from_slice::<Request<'_>>(line) else { return Ok(()) };
        // Neither notifications nor answers want one.
        let (Some(id), false) = (request.id, request.method.is_empty()) else { return Ok(()) };
        std::thread::sleep(self.script.delay);
        let modern = request.params.meta.version.is_some();
        let era = self.script.era;
        self.buffer.clear();
        self.put(r#"{"jsonrpc":"2.0","id":"#);
        self.put(id.get());
        let mut unended = false;
        match request.method.as_ref() {
            method::DISCOVER if era != Some(Era::Legacy) => self.discovered(),
            method::INITIALIZE if era != Some(Era::Modern) => self.initialized(),
            method::INITIALIZE => self.put(concat!(
                r#","error":{"code":-32022,"message":"unsupported protocol version","#,
                r#""data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}"#
            )),
            method::PING => self.put(r#","result":{}"#),
            method::TOOLS_LIST => {
                self.listed(request.params.cursor.as_deref(), modern);
                unended = self.script.no_newline;
            }
            method::TOOLS_CALL => self.called(request.params.arguments, modern),
            _ => self.put(r#","error":{"code":-32601,"message":"method not found"}"#),
        }
        self.put(if unended { "" } else { "}\n" });
        self.out.write_all(&self.buffer)
    }

    fn put(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// What every modern result has; closes the result.
    fn close(&mut self, modern: bool, cacheable: bool) {
        self.put(match (modern, cacheable) {
            (false, _) => "}",
            (true, false) => r#","resultType":"complete"}"#,
            (true, true) => r#","resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
        });
    }

    fn discovered(&mut self) {
        let supported = format!(
            r#","result":{{"supportedVersions":["{}"],"capabilities":{{"tools":{{}}}},"#,
            Version::MODERN
        );
        self.put(&supported);
        self.put(concat!(
            r#""_meta":{"io.modelcontextprotocol/serverInfo":"#,
            r#"{"name":"script","version":"1.0.0"}}"#
        ));
        self.close(true, true);
    }

    fn initialized(&mut self) {
        let result = format!(
            r#","result":{{"protocolVersion":"{}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"script","version":"1.0.0"}}}}"#,
            Version::LEGACY
        );
        self.put(&result);
    }

    fn listed(&mut self, cursor: Option<&str>, modern: bool) {
        let page = cursor.map_or(Some(0), |cursor| cursor.parse::<usize>().ok());
        if self.script.endless_cursor {
            let size = self.script.page.max(1);
            let page = page.unwrap_or(0);
            let fresh = self.script.render(page * size..(page + 1) * size, Some(page + 1));
            self.put(r#","result":{"#);
            self.put(&fresh);
            return self.close(modern, true);
        }
        match page.and_then(|page| self.pages.get(page)) {
            Some(page) => {
                self.buffer.extend_from_slice(br#","result":{"#);
                self.buffer.extend_from_slice(page.as_bytes());
                self.close(modern, true);
            }
            None => self.put(r#","error":{"code":-32602,"message":"invalid cursor"}"#),
        }
    }

    /// Echoes the arguments as text.
    fn called(&mut self, arguments: Option<&RawValue>, modern: bool) {
        let echo = serde_json::to_string(arguments.map_or("{}", RawValue::get)).unwrap_or_default();
        self.put(r#","result":{"content":[{"type":"text","text":"#);
        self.put(&echo);
        self.put("}]");
        self.close(modern, false);
    }
}

/// The binary `toolcrib-script` of the profile the caller was built in; built first when it is
/// missing or older than this file.
///
/// Cargo gives a package the path of its own binaries only, and the tests of other rooms need this
/// one, too.
///
/// # Panics
/// It cannot be built.
pub fn binary() -> PathBuf {
    let exe = std::env::current_exe().expect("a running program has a path");
    let folder = exe.parent().expect("a program lies in a folder");
    let profile = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    let profile = profile.expect("deps lies in a profile's folder");
    let binary = profile.join("toolcrib-script");
    if !is_fresh(&binary) {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "-p", env!("CARGO_PKG_NAME"), "--bin", "toolcrib-script"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.arg("--target-dir").arg(profile.parent().expect("a profile lies in a target dir"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.status().expect("cargo starts");
        assert!(status.success(), "toolcrib-script cannot be built: {status}");
    }
    binary
}

fn is_fresh(binary: &std::path::Path) -> bool {
    let changed =
        |path: &std::path::Path| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/script.rs");
    matches!((changed(binary), changed(&source)), (Some(built), Some(written)) if built >= written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_all_tools_and_are_json() {
        let check = |tools: usize, page: usize, pages: usize| {
            let script = Script { tools, page, ..Script::default() };
            let rendered = script.pages();
            assert_eq!(rendered.len(), pages, "{tools} by {page}");
            let listed: usize = rendered
                .iter()
                .map(|page| {
                    let value: serde_json::Value =
                        serde_json::from_str(&format!("{{{page}}}")).unwrap();
                    value["tools"].as_array().unwrap().len()
                })
                .sum();
            assert_eq!(listed, tools);
        };
        check(10_000, 100, 100);
        check(7, 3, 3);
        check(7, 0, 1);
        check(0, 5, 1);
    }

    #[test]
    fn bombs_are_what_they_say() {
        let page = |script: Script| format!("{{{}}}", script.pages()[0]);
        let deep = page(Script { depth: 1_000, ..Script::default() });
        assert!(toolcrib_core::raw::depth(&deep) > 2_000);
        assert!(page(Script { page_bytes: 1 << 20, ..Script::default() }).len() > 1 << 20);
        let named: serde_json::Value =
            serde_json::from_str(&page(Script { ansi_names: true, ..Script::default() })).unwrap();
        assert!(named["tools"][0]["name"].as_str().unwrap().contains(ANSI));
    }

    #[test]
    fn an_odd_flag_is_named() {
        let check = |args: &[&str], why: &str| {
            let args = args.iter().map(|arg| (*arg).to_owned());
            assert_eq!(Script::from_args(args).unwrap_err(), why);
        };
        check(&["--tool", "1"], "unknown flag --tool");
        check(&["--tools"], "--tools needs a value");
        check(&["--era", "old"], "--era is modern, legacy or dual, not old");
    }
}
