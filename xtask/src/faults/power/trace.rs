//! Reads from a trace of `strace` what a process did to its files.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::disk::{Disk, Node};
use crate::Fault;
use crate::faults::strace::call_in;

/// The calls that change files, and those that one must know to follow them.
pub const CALLS: &str = "trace=?open,?openat,?creat,write,pwrite64,writev,pwritev,?pwritev2,ftruncate,?truncate,fallocate,?rename,?renameat,\
    ?renameat2,?link,linkat,?symlink,symlinkat,?unlink,unlinkat,?rmdir,?mkdir,mkdirat,fsync,fdatasync,?syncfs,?sync,\
    ?copy_file_range,?sendfile,lseek,read,readv";

/// What is said on standard output after so many deeds.
pub struct Word {
    pub after: usize,
    pub text: String,
}

/// Plays a trace onto a disk.
pub struct Player<'a> {
    pub disk: &'a mut Disk,
    /// The folder that the disk stands for.
    pub folder: &'a Path,
    pub words: Vec<Word>,
    offsets: HashMap<u32, usize>,
    appends: HashMap<u32, bool>,
}

impl<'a> Player<'a> {
    pub fn new(disk: &'a mut Disk, folder: &'a Path) -> Player<'a> {
        Player { disk, folder, words: Vec::new(), offsets: HashMap::new(), appends: HashMap::new() }
    }

    pub fn play(&mut self, trace: &str) -> Result<(), Fault> {
        // A call that another thread interrupts stands on two lines.
        let mut begun: HashMap<&str, String> = HashMap::new();
        for line in trace.lines() {
            let (process, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.trim_start();
            if let Some(first) = rest.strip_suffix("<unfinished ...>") {
                begun.insert(process, first.trim_end().to_owned());
                continue;
            }
            let whole = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
                Some((_, last)) => begun.remove(process).unwrap_or_default() + last,
                None => rest.to_owned(),
            };
            if let Some((name, rest)) = call_in(&whole) {
                self.call(name, rest).map_err(|fault| format!("{fault} in {line:.300}"))?;
            }
        }
        Ok(())
    }

    fn call(&mut self, name: &str, rest: &str) -> Result<(), Fault> {
        let Some(at) = rest.rfind(") = ").or_else(|| rest.rfind(") ")) else { return Ok(()) };
        let result = rest[at + 1..].trim_start().trim_start_matches("= ");
        let number = result.split([' ', '<']).next().unwrap_or_default();
        let Some(done) = number.parse::<usize>().ok() else { return Ok(()) };
        let args = arguments(&rest[..at]);
        let arg = |index: usize| args.get(index).map(String::as_str).unwrap_or_default();
        let flat = |index: usize| self.ours(Path::new(""), arg(index));
        match name {
            "open" | "creat" | "openat" => {
                let (path, flags) = match name {
                    "openat" => (self.placed(arg(0), arg(1)), arg(2)),
                    _ => (flat(0), if name == "creat" { "O_CREAT|O_TRUNC" } else { arg(1) }),
                };
                self.offsets.insert(done as u32, 0);
                self.appends.insert(done as u32, flags.contains("O_APPEND"));
                let Some(path) = path else { return Ok(()) };
                if flags.contains("O_CREAT") {
                    let mode =
                        args.last().and_then(|mode| u32::from_str_radix(mode, 8).ok()).unwrap_or(0o600);
                    self.disk.create(&path, mode);
                }
                if let (true, Some(Node::File(file))) = (flags.contains("O_TRUNC"), self.disk.node(&path)) {
                    let file = *file;
                    if self.disk.length(file) > 0 {
                        self.disk.resize(file, 0);
                    }
                }
            }
            "read" | "readv" => *self.offsets.entry(handle(arg(0))).or_default() += done,
            "lseek" => drop(self.offsets.insert(handle(arg(0)), done)),
            "write" | "writev" if handle(arg(0)) == 1 => {
                let text = String::from_utf8_lossy(&written(arg(1))?[..done]).into_owned();
                self.words.push(Word { after: self.disk.deeds(), text });
            }
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => {
                let Some(file) = self.file(arg(0)) else { return Ok(()) };
                let bytes = written(arg(1))?;
                let bytes = bytes.get(..done).ok_or("the trace was cut")?;
                let own = handle(arg(0));
                let at = match name {
                    "pwrite64" | "pwritev" | "pwritev2" => arg(3).parse()?,
                    _ if self.appends.get(&own) == Some(&true) => self.disk.length(file),
                    _ => self.offsets.get(&own).copied().unwrap_or_default(),
                };
                self.disk.write(file, at, bytes);
                if name.starts_with("write") {
                    self.offsets.insert(own, at + done);
                }
            }
            "copy_file_range" | "sendfile" => {
                let (to, from) = if name == "sendfile" { (arg(0), arg(1)) } else { (arg(2), arg(0)) };
                let Some(file) = self.file(to) else { return Ok(()) };
                let (own, other) = (handle(to), handle(from));
                let (begin, at) = (self.offset(other), self.offset(own));
                let source = self.file(from).ok_or("it copies from outside")?;
                let bytes =
                    self.disk.bytes(source).get(begin..begin + done).ok_or("it copies nothing")?.to_vec();
                self.disk.write(file, at, &bytes);
                self.offsets.insert(own, at + done);
                self.offsets.insert(other, begin + done);
            }
            "ftruncate" => {
                if let Some(file) = self.file(arg(0)) {
                    self.disk.resize(file, arg(1).parse()?);
                }
            }
            "truncate" => {
                if let Some(Node::File(file)) = flat(0).and_then(|path| self.disk.node(&path).cloned()) {
                    self.disk.resize(file, arg(1).parse()?);
                }
            }
            "fallocate" => {
                let end = arg(2).parse::<usize>()? + arg(3).parse::<usize>()?;
                if let Some(file) = self.file(arg(0)).filter(|file| self.disk.length(*file) < end)
                    && arg(1) == "0"
                {
                    self.disk.resize(file, end);
                }
            }
            "rename" => self.renamed(flat(0), flat(1)),
            "renameat" | "renameat2" => {
                self.renamed(self.placed(arg(0), arg(1)), self.placed(arg(2), arg(3)));
            }
            "link" => self.linked(flat(0), flat(1)),
            "linkat" => self.linked(self.placed(arg(0), arg(1)), self.placed(arg(2), arg(3))),
            "symlink" | "symlinkat" => {
                let path = if name == "symlink" { flat(1) } else { self.placed(arg(1), arg(2)) };
                if let Some(path) = path {
                    let to = String::from_utf8_lossy(&quoted(arg(0))?).into_owned();
                    self.disk.put(&path, Node::Link(to.into()));
                }
            }
            "unlink" | "rmdir" => flat(0).into_iter().for_each(|path| self.disk.take(&path)),
            "unlinkat" => self.placed(arg(0), arg(1)).into_iter().for_each(|path| self.disk.take(&path)),
            "mkdir" => flat(0).into_iter().for_each(|path| self.disk.put(&path, Node::Folder)),
            "mkdirat" => {
                self.placed(arg(0), arg(1)).into_iter().for_each(|path| self.disk.put(&path, Node::Folder));
            }
            "fsync" | "fdatasync" => {
                if let Some(path) = self.inside(shown_path(arg(0))) {
                    self.disk.flush(&path);
                }
            }
            "sync" | "syncfs" => return Err("it flushes a whole file system".into()),
            _ => {}
        }
        Ok(())
    }

    fn offset(&self, handle: u32) -> usize {
        self.offsets.get(&handle).copied().unwrap_or_default()
    }

    fn renamed(&mut self, from: Option<PathBuf>, to: Option<PathBuf>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.disk.rename(&from, &to);
        }
    }

    fn linked(&mut self, from: Option<PathBuf>, to: Option<PathBuf>) {
        if let (Some(node), Some(to)) = (from.and_then(|from| self.disk.node(&from).cloned()), to) {
            self.disk.put(&to, node);
        }
    }

    /// The file that an open handle stands for.
    fn file(&self, handle: &str) -> Option<usize> {
        match self.disk.node(&self.inside(shown_path(handle))?) {
            Some(Node::File(file)) => Some(*file),
            Some(Node::Folder | Node::Link(_)) | None => None,
        }
    }

    /// A path that is named from an open folder.
    fn placed(&self, folder: &str, path: &str) -> Option<PathBuf> {
        self.ours(Path::new(shown_path(folder)), path)
    }

    fn ours(&self, from: &Path, path: &str) -> Option<PathBuf> {
        let bytes = quoted(path).ok()?;
        let named = String::from_utf8(bytes).ok()?;
        self.inside(&from.join(named).to_string_lossy())
    }

    /// The path from our folder on; nothing for what lies elsewhere.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let mut flat = PathBuf::new();
        for part in Path::new(path).components() {
            match part {
                Component::ParentDir => drop(flat.pop()),
                Component::CurDir => {}
                part => flat.push(part),
            }
        }
        flat.strip_prefix(self.folder).ok().map(Path::to_owned)
    }
}

/// The number of an open file, which its path follows: `3</state/timeline.db>`.
fn handle(arg: &str) -> u32 {
    arg.split('<').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

fn shown_path(arg: &str) -> &str {
    arg.split_once('<').map_or("", |(_, path)| path.trim_end_matches('>').trim_end_matches(">(deleted)"))
}

/// The arguments of a call, split at the commas that stand outside of strings and brackets.
fn arguments(text: &str) -> Vec<String> {
    let (mut all, mut one, mut depth, mut quoted, mut escaped) = (Vec::new(), String::new(), 0, false, false);
    for sign in text.chars() {
        let was_escaped = std::mem::take(&mut escaped);
        match sign {
            '\\' if quoted && !was_escaped => escaped = true,
            '"' if !was_escaped => quoted = !quoted,
            '[' | '{' | '<' if !quoted => depth += 1,
            ']' | '}' | '>' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                all.push(std::mem::take(&mut one).trim().to_owned());
                continue;
            }
            _ => {}
        }
        one.push(sign);
    }
    all.push(one.trim().to_owned());
    all
}

/// What a call writes: a string, or a list of them.
fn written(arg: &str) -> Result<Vec<u8>, Fault> {
    match arg.strip_prefix('[') {
        None => quoted(arg),
        Some(list) => {
            let parts = list.split("iov_base=").skip(1).map(|part| quoted(&arguments(part)[0]));
            Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
        }
    }
}

/// The bytes of a string as C writes it.
fn quoted(text: &str) -> Result<Vec<u8>, Fault> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let inner = inner.ok_or_else(|| format!("no whole string: {text:.80}"))?.as_bytes();
    let (mut bytes, mut at) = (Vec::with_capacity(inner.len()), 0);
    while let Some(byte) = inner.get(at) {
        at += 1;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let sign = *inner.get(at).ok_or("a string ends in a backslash")?;
        at += 1;
        bytes.push(match sign {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'0'..=b'7' => {
                let digits = inner[at - 1..].iter().take(3).take_while(|digit| (b'0'..=b'7').contains(digit));
                let digits: Vec<u8> = digits.copied().collect();
                at += digits.len() - 1;
                u8::try_from(digits.iter().fold(0_u32, |number, digit| number * 8 + u32::from(digit - b'0')))?
            }
            other => other,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_arguments_are_read_as_strace_writes_them() {
        assert_eq!(quoted(r#""a\n\0\3771\\\"\1012""#).expect("a string"), b"a\n\0\xff1\\\"A2");
        let text = r#"3</a,b>, [{iov_base="x,]", iov_len=3}, {iov_base="y", iov_len=1}], 2"#;
        let args = arguments(text);
        assert_eq!(args.len(), 3, "{args:?}");
        assert_eq!(written(&args[1]).expect("bytes"), b"x,]y");
        assert_eq!((handle(&args[0]), shown_path(&args[0])), (3, "/a,b"));
    }
}
