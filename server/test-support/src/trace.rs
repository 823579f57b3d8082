//! Parses system calls that strace has recorded.

use std::{
    collections::HashMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::disk::Call;

/// One step of the trace.
pub enum Step {
    /// A call that changes the disk.
    Disk(Call),
    /// Bytes sent to a socket. A client may read them from now on.
    Sent(Vec<u8>),
}

/// Parses a trace into steps. Each comes with its time, which is the number of the line at which it takes effect.
///
/// A write may take effect from its beginning and has taken effect by its end. A sync takes effect at its end, for writes
/// that ended before it began.
pub fn steps(trace: &str, watched: &Path, first_line: usize) -> Vec<(usize, Step)> {
    let mut steps = Vec::new();
    let mut under_way = HashMap::<&str, (usize, &str)>::new();
    for (number, line) in trace.lines().enumerate() {
        let number = first_line + number;
        let (thread, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            under_way.insert(thread, (number, begun));
            continue;
        }
        let (begun, arguments, ended) = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let (begun, arguments) = under_way.remove(thread).unwrap();
                (begun, arguments, resumed.split_once("resumed>").unwrap().1)
            }
            None => (number, rest, ""),
        };
        steps.extend(step(&format!("{arguments}{ended}"), begun, number, watched));
    }
    // A call that never returned may have taken effect.
    for (begun, arguments) in under_way.into_values() {
        if !arguments.contains("sync") && !arguments.starts_with("openat") {
            steps.extend(step(&format!("{arguments}) = ?"), begun, usize::MAX, watched));
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

fn step(call: &str, begun: usize, ended: usize, watched: &Path) -> Option<(usize, Step)> {
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let result = result.trim();
    if result.starts_with('-') {
        return None;
    }
    let result_number: Option<u64> = result.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let path = |nth: usize| {
        let text = String::from_utf8(quoted(arguments).nth(nth)?).ok()?;
        Some(PathBuf::from(text)).filter(|path| path.starts_with(watched))
    };
    let fd = || arguments.split(['<', ',', ')']).next()?.parse::<u32>().ok();
    // `5<path>` is the descriptor of a file. The server did not open the standard streams.
    let file = arguments.split_once('<').and_then(|(_, path)| path.split('>').next()).map(unhexed);
    let is_watched = file.is_some_and(|path| Path::new(OsStr::from_bytes(&path)).starts_with(watched))
        && fd().is_some_and(|fd| fd > 2);
    // strace puts spaces around the bracket of an interrupted call.
    let last_number = || {
        let last = arguments.trim_end_matches([')', ' ']).rsplit(", ").next().unwrap();
        last.parse::<u64>().unwrap_or_else(|_| panic!("{name} does not end with a number: {last}"))
    };
    let (at, step) = match name {
        "openat" => {
            let (path, fd) = (path(0)?, u32::try_from(result_number?).ok()?);
            (ended, Step::Disk(Call::Open { path, fd, truncates: arguments.contains("O_TRUNC") }))
        }
        "lseek" if is_watched => (ended, Step::Disk(Call::Seek { fd: fd()?, to: result_number? })),
        "write" | "pwrite64" | "writev" if is_watched => {
            let mut bytes = quoted(arguments).flatten().collect::<Vec<_>>();
            bytes.truncate(result_number.map_or(usize::MAX, |length| usize::try_from(length).unwrap()));
            let at = if name == "pwrite64" { Some(last_number()) } else { None };
            (begun, Step::Disk(Call::Write { fd: fd()?, at, bytes, done: ended }))
        }
        "write" | "writev" | "sendto" | "sendmsg" => (begun, Step::Sent(quoted(arguments).flatten().collect())),
        "ftruncate" if is_watched => {
            (begun, Step::Disk(Call::SetLength { fd: fd()?, length: last_number(), done: ended }))
        }
        "mkdir" | "mkdirat" => (begun, Step::Disk(Call::MakeDirectory { path: path(0)?, done: ended })),
        "rename" | "renameat" | "renameat2" => {
            (begun, Step::Disk(Call::Rename { from: path(0)?, to: path(1)?, done: ended }))
        }
        "unlink" | "unlinkat" => (begun, Step::Disk(Call::Remove { path: path(0)?, done: ended })),
        // A sync interrupted by the end of the process (`= ?`) makes nothing durable.
        "fsync" | "fdatasync" if is_watched => {
            result_number?;
            (ended, Step::Disk(Call::Sync { fd: fd()?, begun }))
        }
        "sync_file_range" => return None,
        // This call reserves space but changes neither content nor length.
        "fallocate" if arguments.contains("KEEP_SIZE") => return None,
        _ if is_watched => panic!("the model does not know {name}"),
        _ => return None,
    };
    Some((at, step))
}

/// The strings among a call's arguments.
fn quoted(arguments: &str) -> impl Iterator<Item = Vec<u8>> + '_ {
    arguments.split('"').skip(1).step_by(2).map(unhexed)
}

/// Decodes bytes that strace wrote in hex: `\x2f\x74`.
fn unhexed(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap();
    hex.as_bytes().chunks_exact(4).map(|byte| digit(byte[2]) << 4 | digit(byte[3])).collect()
}
