//! A child with everything it started, as one thing to signal.
//!
//! The child leads a process group of its own, so one signal reaches all that stayed in it. On
//! Linux, descendants that left the group (`setsid`) are found by walking `/proc` and signalled one
//! by one. A process whose parents were all gone before anybody looked, which is what a program does
//! to become a daemon, is left alone, unless the program around us adopts such orphans. Elsewhere
//! only the group is signalled.
//!
//! A number is never signalled once it could belong to somebody else: the group only while its
//! leader is not reaped, a descendant only while its start time is the one seen before.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

/// A child that leads a process group, and its descendants.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Pid,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    reaped: bool,
    /// Descendants seen outside the group.
    strays: Vec<proc::Member>,
}

impl Tree {
    /// The tree of `leader`: a child of ours, not reaped, that leads its own group.
    pub(crate) fn new(leader: Pid) -> Self {
        Self { leader, known: Mutex::default() }
    }

    /// How the leader ended, without reaping it; `None` while it runs.
    ///
    /// # Errors
    /// There is no such child (any more).
    pub(crate) fn ended(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(self.leader), options) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other,
            }
        }
    }

    /// Remembers descendants that are outside the group, so that they can still be found when the
    /// processes between are gone.
    pub(crate) fn note(&self) {
        let mut known = self.lock();
        if known.reaped {
            return;
        }
        for stray in proc::strays(self.leader) {
            if !known.strays.contains(&stray) {
                known.strays.push(stray);
            }
        }
    }

    /// Signals the group and every descendant seen outside it.
    pub(crate) fn signal(&self, signal: Signal) {
        let known = self.lock();
        if !known.reaped {
            // Fails when nobody is left, which is what we want in the end.
            let _ = rustix::process::kill_process_group(self.leader, signal);
        }
        for stray in known.strays.iter().filter(|stray| stray.is_alive()) {
            let _ = rustix::process::kill_process(stray.pid, signal);
        }
    }

    /// True while anything of the tree other than the leader runs.
    pub(crate) fn has_followers(&self) -> bool {
        let known = self.lock();
        (!known.reaped && proc::has_followers(self.leader))
            || known.strays.iter().any(proc::Member::is_alive)
    }

    /// Reaps the leader by `reap`; the group is not signalled after that.
    pub(crate) fn reap<T>(&self, reap: impl FnOnce() -> T) -> T {
        let mut known = self.lock();
        known.reaped = true;
        reap()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes every descendant that loses its parents a child of ours.
pub(crate) fn adopt() {
    proc::adopt();
}

/// Signals every child of ours; false when there is none left.
pub(crate) fn signal_children(signal: Signal) -> bool {
    let children = proc::children();
    for child in &children {
        let _ = rustix::process::kill_process(child.pid, signal);
    }
    !children.is_empty()
}

/// The process table, as far as this system shows it without `unsafe`.
#[cfg(target_os = "linux")]
mod proc {
    use std::{
        collections::HashSet,
        fs,
        path::Path,
        sync::{Arc, Mutex, PoisonError},
        time::Instant,
    };

    use rustix::process::Pid;

    /// One process. Pid and start time together name it for good.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct Member {
        pub(super) pid: Pid,
        started: u64,
        parent: i32,
        group: i32,
        dead: bool,
    }

    impl Member {
        /// True while this very process runs.
        pub(super) fn is_alive(&self) -> bool {
            stat_in(Path::new(&format!("/proc/{}", self.pid.as_raw_nonzero())))
                .is_some_and(|now| now.started == self.started && !now.dead)
        }
    }

    /// Descendants of the leader or of anybody in its group that are in another group.
    pub(super) fn strays(leader: Pid) -> Vec<Member> {
        let table = table();
        let group = leader.as_raw_nonzero().get();
        let mut tree: HashSet<i32> = table
            .iter()
            .filter(|member| member.group == group)
            .map(|member| member.pid.as_raw_nonzero().get())
            .chain([group])
            .collect();
        let mut strays = Vec::new();
        loop {
            let before = strays.len();
            for member in table.iter().filter(|member| !member.dead) {
                let descends = tree.contains(&member.parent);
                if descends && tree.insert(member.pid.as_raw_nonzero().get()) {
                    strays.push(*member);
                }
            }
            if strays.len() == before {
                return strays;
            }
        }
    }

    pub(super) fn adopt() {
        // Fails on no kernel of the last ten years; then orphans stay where they were.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    /// Our children that run.
    pub(super) fn children() -> Vec<Member> {
        let us = rustix::process::getpid().as_raw_nonzero().get();
        table().iter().filter(|member| member.parent == us && !member.dead).copied().collect()
    }

    /// True when somebody other than the leader runs in its group.
    pub(super) fn has_followers(leader: Pid) -> bool {
        let group = leader.as_raw_nonzero().get();
        table().iter().any(|member| member.group == group && member.pid != leader && !member.dead)
    }

    /// The process table as it is now. A look that somebody else began after we asked is as good
    /// as our own, so many servers that are stopped at once take few looks.
    fn table() -> Arc<[Member]> {
        static LAST: Mutex<Option<(Instant, Arc<[Member]>)>> = Mutex::new(None);
        let asked = Instant::now();
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((taken, table)) = &*last
            && *taken >= asked
        {
            return table.clone();
        }
        let taken = Instant::now();
        let table: Arc<[Member]> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
            .filter_map(|entry| stat_in(&entry.path()))
            .collect();
        *last = Some((taken, table.clone()));
        table
    }

    fn stat_in(folder: &Path) -> Option<Member> {
        // A name may hold any bytes.
        let stat = fs::read(folder.join("stat")).ok()?;
        read_stat(&String::from_utf8_lossy(&stat))
    }

    /// Reads a line of `/proc/PID/stat`. The name in it may hold spaces and brackets.
    fn read_stat(stat: &str) -> Option<Member> {
        let (head, rest) = stat.rsplit_once(')')?;
        let pid = Pid::from_raw(head.split_once(' ')?.0.parse().ok()?)?;
        let fields: Vec<_> = rest.split_ascii_whitespace().collect();
        Some(Member {
            pid,
            dead: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_stat_line_is_read_whatever_the_name_is() {
            let rest = "S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2";
            let member = read_stat(&format!("42 (a) Z (b) {rest}")).unwrap();
            assert_eq!((member.parent, member.group, member.started), (7, 8, 4711));
            assert_eq!((member.pid.as_raw_nonzero().get(), member.dead), (42, false));
            assert!(read_stat("42 (a) S 7").is_none());
        }
    }
}

/// Where the process table cannot be read, the group is all there is.
#[cfg(not(target_os = "linux"))]
mod proc {
    use rustix::process::Pid;

    /// A descendant outside the group; none is ever found here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct Member {
        pub(super) pid: Pid,
    }

    impl Member {
        pub(super) fn is_alive(&self) -> bool {
            rustix::process::test_kill_process(self.pid).is_ok()
        }
    }

    pub(super) fn strays(_leader: Pid) -> Vec<Member> {
        Vec::new()
    }

    pub(super) fn adopt() {}

    pub(super) fn children() -> Vec<Member> {
        Vec::new()
    }

    /// A group in which only a dead leader is left refuses the test signal on BSD systems.
    pub(super) fn has_followers(leader: Pid) -> bool {
        rustix::process::test_kill_process_group(leader).is_ok()
    }
}
