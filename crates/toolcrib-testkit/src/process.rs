//! Questions about processes, and their end: whether one still exists, how much memory it had.
//!
//! Only process ids that a test started itself are meant to come here. Reads `/proc`: Linux only.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// The state letter of a process (`R`, `S`, `Z` …); `None` when it does not exist.
pub fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may itself hold brackets and blanks.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// True when no process of this id exists, not even as a zombie.
pub fn is_gone(pid: u32) -> bool {
    state(pid).is_none()
}

/// Waits until all of `pids` are gone; gives those that are still there after `within`, with
/// their state letters.
pub fn still_there(pids: &[u32], within: Duration) -> Vec<(u32, char)> {
    let end = Instant::now() + within;
    loop {
        let left: Vec<_> =
            pids.iter().filter_map(|pid| state(*pid).map(|letter| (*pid, letter))).collect();
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes whose environment held this variable with this value when they began; descendants
/// inherit it.
pub fn with_variable(name: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{name}={value}");
    let has = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(has).collect()
}

/// The lowest TCP port on which a process listens.
pub fn listening_port(pid: u32) -> Option<u16> {
    let sockets: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{pid}/net/{table}"));
    let tables: String = tables.iter().flat_map(fs::read_to_string).collect();
    let ports = tables.lines().filter_map(|line| {
        // sl, local address and port, remote, state (0A: listening), …, the tenth is the inode.
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_ours = *fields.get(3)? == "0A" && sockets.iter().any(|inode| inode == fields[9]);
        let port = u16::from_str_radix(fields[1].rsplit_once(':')?.1, 16).ok()?;
        is_ours.then_some(port)
    });
    ports.min()
}

/// The most memory this process ever had resident, in bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10)
}

/// The processor time a process has used, all its threads together; in steps of ten milliseconds.
pub fn processor_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name: state, then utime and stime as the 12th and 13th, in ticks of a hundredth.
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

/// Kills the process group that `leader` leads. A group that is already gone is fine.
pub(crate) fn kill_group(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_it_is_reaped() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!is_gone(child.id()));
        child.kill().unwrap();
        assert_eq!(still_there(&[child.id()], Duration::from_millis(50)), [(child.id(), 'Z')]);
        child.wait().unwrap();
        assert_eq!(still_there(&[child.id()], Duration::from_secs(5)), []);
    }

    #[test]
    fn a_process_is_found_by_its_environment() {
        let value = format!("t{}", std::process::id());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env("TOOLCRIB_FOUND_BY", &value)
            .spawn()
            .unwrap();
        // A new program's environment is there a moment after its start.
        let end = Instant::now() + Duration::from_secs(10);
        let found = loop {
            let found = with_variable("TOOLCRIB_FOUND_BY", &value);
            if !found.is_empty() || Instant::now() >= end {
                break found;
            }
        };
        let expected = [child.id()];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, expected);
        assert!(with_variable("TOOLCRIB_FOUND_BY", &value).is_empty());
    }

    #[test]
    fn a_listening_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_port(std::process::id()).is_some_and(|lowest| lowest <= port));
        assert_eq!(listening_port(u32::MAX), None);
    }

    #[test]
    fn processor_time_grows_with_work() {
        let id = std::process::id();
        let begin = processor_time(id).unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while processor_time(id).unwrap() == begin {
            assert!(Instant::now() < end, "it stays at {begin:?}");
        }
        assert_eq!(processor_time(u32::MAX), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert!(peak_rss_bytes().unwrap() > 500_000);
    }
}
