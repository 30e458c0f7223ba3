//! What the script process takes away from itself before it sees a script.

use std::io;

use nix::sys::resource::{Resource, UsageWho, getrusage, rlim_t, setrlimit};
use nix::sys::time::TimeValLike as _;
use nix::unistd;

use crate::limits::{SLICE_CPU_MS, TOTAL_CPU_MS};

/// Most descriptors: standard input, output and error, and a few for the runtime itself.
const DESCRIPTORS_MAX: rlim_t = 8;

/// Ties the process to its parent and gives up what it does not need. Called while it has one
/// thread.
pub(super) fn before_start() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::prctl;
        prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        prctl::set_no_new_privs()?;
        close_inherited()?;
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS_MAX, DESCRIPTORS_MAX)?;
    Ok(())
}

/// Closes what a parent forgot to mark as its own.
#[cfg(target_os = "linux")]
fn close_inherited() -> io::Result<()> {
    let mut inherited = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let descriptor = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        inherited.extend(descriptor.filter(|number| *number > 2));
    }
    for descriptor in inherited {
        // The descriptor of the listing itself is closed already.
        if let Err(error) = unistd::close(descriptor)
            && error != nix::errno::Errno::EBADF
        {
            return Err(error.into());
        }
    }
    Ok(())
}

/// A parent that died before the death signal was set does not send it any more.
pub(super) fn check_parent(expected: u32) -> io::Result<()> {
    let parent = unistd::getppid().as_raw();
    if u32::try_from(parent) == Ok(expected) {
        return Ok(());
    }
    Err(io::Error::other("the engine is gone"))
}

/// Processor time of this process so far, in milliseconds.
pub(super) fn cpu_ms() -> io::Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let used = usage.user_time() + usage.system_time();
    Ok(u64::try_from(used.num_milliseconds()).unwrap_or(0))
}

/// Lets the kernel end the process a little after its slice: some of the engine's built-in loops
/// never ask whether they should stop. The kernel counts whole seconds.
pub(super) fn limit_cpu(used_ms: u64) -> io::Result<()> {
    let soft = (used_ms + SLICE_CPU_MS).div_ceil(1_000);
    let hard = TOTAL_CPU_MS.div_ceil(1_000) + 3;
    setrlimit(Resource::RLIMIT_CPU, soft.min(hard), hard)?;
    Ok(())
}
