//! The disk's own speed, without which no figure of a durable write means anything.

use std::io::{Seek as _, SeekFrom, Write as _};

use crate::load::{Latencies, now};

/// How often it is measured.
const COUNT: usize = 200;

/// Overwrites 4 KiB and waits until they are on the disk, again and again.
pub(crate) fn fdatasync() -> anyhow::Result<Latencies> {
    let mut file = tempfile::tempfile()?;
    let mut samples = Latencies::new()?;
    for _ in 0..COUNT {
        file.seek(SeekFrom::Start(0))?;
        let began = now();
        file.write_all(&[7; 4_096])?;
        file.sync_data()?;
        samples.since(began);
    }
    Ok(samples)
}
