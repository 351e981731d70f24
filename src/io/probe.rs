//! Whether io_uring may be used, and if not, why: one line that an operator can act on.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why io_uring is not used.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A call failed.
    Call { call: &'static str, error: io::Error },
    /// The kernel's io_uring lacks an operation.
    Operation(&'static str),
    /// The file system is on the deny list.
    FileSystem(&'static str),
}

impl Refusal {
    pub(super) fn call(call: &'static str) -> impl Fn(io::Error) -> Refusal {
        move |error| Refusal::Call { call, error }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Call { call, error } => match error.raw_os_error().and_then(known) {
                Some((name, hint)) => write!(f, "{call}: {name}: {hint}"),
                None => write!(f, "{call}: {error}"),
            },
            Refusal::Operation(operation) => {
                write!(f, "this kernel's io_uring has no {operation} (Linux 5.6)")
            }
            Refusal::FileSystem(reason) => write!(f, "not on this file system, {reason}"),
        }
    }
}

/// The error's name and what is most likely behind it.
fn known(errno: i32) -> Option<(&'static str, &'static str)> {
    const SANDBOX: &str = "forbidden by a seccomp profile (the default of most container runtimes), \
                           a security module, or sysctl kernel.io_uring_disabled";
    const OLD: &str = "the kernel is too old or was built without it, or a sandbox hides it";
    Some(match Errno::from_raw_os_error(errno) {
        Errno::PERM => ("EPERM", SANDBOX),
        Errno::ACCESS => ("EACCES", SANDBOX),
        Errno::NOSYS => ("ENOSYS", OLD),
        Errno::OPNOTSUPP => ("EOPNOTSUPP", OLD),
        Errno::INVAL => ("EINVAL", OLD),
        Errno::NOMEM => {
            ("ENOMEM", "no memory for the ring; before Linux 5.12 it counts towards RLIMIT_MEMLOCK")
        }
        Errno::MFILE => ("EMFILE", "the process has no descriptor left; raise RLIMIT_NOFILE"),
        Errno::NFILE => ("ENFILE", "the system has no file left; raise sysctl fs.file-max"),
        Errno::AGAIN => ("EAGAIN", "the kernel is short of memory or of workers"),
        Errno::BUSY => ("EBUSY", "the kernel is short of memory or of workers"),
        Errno::FAULT => ("EFAULT", "the ring's memory is not reachable"),
        Errno::IO => ("EIO", "the ring failed"),
        _ => return None,
    })
}

/// Sets up a ring, asks it for the operations needed, and sends one through: some sandboxes allow the
/// first step and refuse a later one.
#[cfg(target_os = "linux")]
pub(super) fn try_io_uring() -> Result<(), Refusal> {
    use io_uring::{IoUring, Probe, opcode};

    let mut ring = IoUring::new(2).map_err(Refusal::call("io_uring_setup"))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(Refusal::call("io_uring_register"))?;
    for (code, name) in [(opcode::Write::CODE, "write"), (opcode::Fsync::CODE, "fsync")] {
        if !probe.is_supported(code) {
            return Err(Refusal::Operation(name));
        }
    }
    // SAFETY: a no-op refers to no memory and no file.
    unsafe { ring.submission().push(&opcode::Nop::new().build()) }.expect("an empty ring has room");
    while let Err(error) = ring.submit_and_wait(1) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(Refusal::Call { call: "io_uring_enter", error });
        }
    }
    match ring.completion().next().map(|completion| completion.result()) {
        Some(0) => Ok(()),
        Some(result) => {
            Err(Refusal::Call { call: "a no-op by io_uring", error: io::Error::from_raw_os_error(-result) })
        }
        None => Err(Refusal::Call { call: "a no-op by io_uring", error: Errno::IO.into() }),
    }
}

/// There is none elsewhere.
#[cfg(not(target_os = "linux"))]
pub(super) fn try_io_uring() -> Result<(), Refusal> {
    Err(Refusal::Call { call: "io_uring_setup", error: Errno::NOSYS.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iu_07_iu_15_a_refusal_names_call_errno_and_hint() {
        for (errno, name, hint) in [
            (Errno::PERM, "EPERM", "kernel.io_uring_disabled"),
            (Errno::ACCESS, "EACCES", "seccomp"),
            (Errno::NOSYS, "ENOSYS", "too old"),
            (Errno::OPNOTSUPP, "EOPNOTSUPP", "too old"),
            (Errno::INVAL, "EINVAL", "too old"),
            (Errno::NOMEM, "ENOMEM", "RLIMIT_MEMLOCK"),
            (Errno::MFILE, "EMFILE", "RLIMIT_NOFILE"),
            (Errno::NFILE, "ENFILE", "file-max"),
        ] {
            let text = Refusal::call("io_uring_setup")(errno.into()).to_string();
            assert!(text.starts_with(&format!("io_uring_setup: {name}: ")), "{text}");
            assert!(text.contains(hint) && !text.contains('\n'), "{text}");
        }
        let other = Refusal::call("io_uring_enter")(Errno::XDEV.into()).to_string();
        assert!(other.contains("os error 18"), "{other}");
        assert!(Refusal::Operation("fsync").to_string().contains("no fsync"));
    }
}
