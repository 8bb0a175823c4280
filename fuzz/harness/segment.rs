//! What fuzzing and a test on stable do with the bytes of a segment: change a whole one, and read it.
//!
//! The input is a list of edits of 12 bytes, each an offset and a word to put there; what is left
//! over says where the file ends. However it comes out, the file is read or refused, and no more.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use holdgap::{Registry, Role};
use holdgap_segment::{Segment, SegmentOptions, attach};
use rustix::fs::{MemfdFlags, memfd_create};
use timely::progress::Antichain;

/// A whole segment with some points in it, one of them held.
fn whole() -> &'static [u8] {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let registry = Registry::new();
        let folder = format!("/dev/shm/holdgap-fuzz-{}", std::process::id());
        let options = SegmentOptions { folder: Some(folder.clone().into()), ..Default::default() };
        let attachment = attach(&registry, options).expect("/dev/shm can be written to");
        let worker = registry.runtime(Role::named("fuzzed")).worker(3);
        let mut points: Vec<_> =
            (0..5).map(|n| worker.publish(format!("u{n}"), "fuzzed")).collect();
        for (point, time) in points.iter_mut().zip(10_u64..) {
            point.set(&Antichain::from_elem(time), &Antichain::from_elem(8));
        }
        let entry = std::fs::read_dir(&folder).expect("it is there").next();
        let path = entry.expect("the segment").expect("can be listed").path();
        let bytes = std::fs::read(path).expect("can be read");
        drop((points, attachment));
        std::fs::remove_dir(folder).expect("nothing is left in it");
        bytes
    })
}

/// Reads a segment that `data` has changed. Returns whether it could be read.
pub(crate) fn segment(data: &[u8]) -> bool {
    let mut bytes = whole().to_vec();
    let edits = data.chunks_exact(12);
    if let [low, high, ..] = edits.remainder() {
        let end = usize::from(u16::from_le_bytes([*low, *high])) * 64;
        bytes.truncate(end.min(bytes.len()));
    }
    for edit in edits {
        let (offset, word) = edit.split_at(4);
        let offset = u32::from_le_bytes(offset.try_into().expect("four bytes")) as usize;
        let at = offset * 8 % bytes.len().max(1);
        let len = word.len().min(bytes.len().saturating_sub(at));
        bytes[at..at + len].copy_from_slice(&word[..len]);
    }
    let file = memfd_create("fuzzed", MemfdFlags::CLOEXEC).expect("there is memory");
    let mut file = File::from(file);
    file.write_all(&bytes).expect("there is memory");
    let Ok(segment) = Segment::from_file(file, "fuzzed") else { return false };
    let read = (segment.reports().is_ok(), segment.points().is_ok(), segment.look(3).is_ok());
    read == (true, true, true)
}
