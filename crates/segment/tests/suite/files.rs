use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use holdgap::Registry;
use holdgap_segment::{AttachError, Folder, FolderError, SegmentOptions, Unreadable, attach};

use crate::support::{FIRST, Publisher, Scratch, held_by, maintenance, publish};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

fn run(command: &str, args: &[&str]) {
    assert!(Command::new(command).args(args).status().unwrap().success(), "{command} {args:?}");
}

#[test]
fn folder_and_file_are_the_users_alone_and_go_when_the_process_ends_well() {
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let attachment = scratch.attach(&registry);
    assert_eq!(attachment.folder(), scratch.path());
    assert_eq!((mode(scratch.path()), mode(&scratch.file())), (0o700, 0o600));
    assert_eq!(attachment.warning(), None, "it is in memory");
    let again = attach(&registry, scratch.options()).unwrap_err();
    assert!(matches!(again, AttachError::Attached), "{again}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    drop(attachment);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    // What is published from here on goes nowhere, and harms nothing.
    let mut point = maintenance(&registry).publish("u1", "late");
    publish(&mut point, FIRST, &held_by("one"));
}

#[test]
fn a_folder_that_is_a_link_or_anothers_or_open_to_others_is_refused() {
    let scratch = Scratch::new();
    let refused = |path: &Path| {
        let options = SegmentOptions { folder: Some(path.to_owned()), ..scratch.options() };
        let error = attach(&Registry::new(), options).unwrap_err();
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        match error {
            AttachError::Folder(error) => {
                assert_eq!(Folder::open(path).unwrap_err().to_string(), error.to_string());
                error
            }
            other => panic!("{other}"),
        }
    };
    fs::create_dir(scratch.path()).unwrap();
    let inside = |name: &str| scratch.path().join(name);
    fs::create_dir(inside("real")).unwrap();
    symlink(inside("real"), inside("link")).unwrap();
    assert!(matches!(refused(&inside("link")), FolderError::NotAFolder(_)));
    symlink(inside("nowhere"), inside("dangling")).unwrap();
    assert!(matches!(refused(&inside("dangling")), FolderError::NotAFolder(_)));
    File::create(inside("file")).unwrap();
    assert!(matches!(refused(&inside("file")), FolderError::NotAFolder(_)));
    fs::create_dir(inside("open")).unwrap();
    fs::set_permissions(inside("open"), Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(refused(&inside("open")), FolderError::Writable(_)));
    fs::create_dir(inside("other")).unwrap();
    std::os::unix::fs::chown(inside("other"), Some(12_345), None).unwrap();
    assert!(matches!(refused(&inside("other")), FolderError::OfAnother { uid: 12_345, .. }));
    let missing = Folder::open(inside("missing")).unwrap_err().to_string();
    assert!(missing.ends_with(&format!("HOLDGAP_SEGMENT_DIR={}", inside("missing").display())));
    let deep = SegmentOptions { folder: Some(inside("no/such")), ..scratch.options() };
    assert!(attach(&Registry::new(), deep).is_err());
}

#[test]
fn a_folder_on_a_disk_is_warned_of() {
    let folder = std::env::current_dir().unwrap().join(format!("on-disk-{}", std::process::id()));
    let options = SegmentOptions { folder: Some(folder.clone()), ..Scratch::new().options() };
    let attachment = attach(&Registry::new(), options).unwrap();
    let in_memory = Command::new("stat").args(["-f", "-c", "%T", "."]).output().unwrap().stdout;
    let in_memory = String::from_utf8_lossy(&in_memory).trim() == "tmpfs";
    assert_eq!(attachment.warning().is_none(), in_memory);
    drop(attachment);
    fs::remove_dir(folder).unwrap();
}

/// A file system of a test's own, in memory, of some kilobytes.
struct Small(Scratch);

impl Small {
    fn mount(kilobytes: u64) -> Self {
        let scratch = Scratch::new();
        fs::create_dir(scratch.path()).unwrap();
        let size = format!("size={kilobytes}k,mode=700");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", scratch.path().to_str().unwrap()]);
        Small(scratch)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run("umount", &["--lazy", self.0.path().to_str().unwrap()]);
    }
}

#[test]
fn a_full_file_system_is_an_error_at_attach_and_leaves_nothing_behind() {
    let small = Small::mount(64);
    let error = attach(&Registry::new(), small.0.options()).unwrap_err();
    assert!(matches!(error, AttachError::NoRoom { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("no room") && text.lines().count() == 1, "{text}");
    assert_eq!(fs::read_dir(small.0.path()).unwrap().count(), 0);
}

#[test]
fn a_file_system_that_fills_up_later_leaves_points_out_and_kills_nobody() {
    // Room for the front and for one group of slots.
    let small = Small::mount(260 + 108 + 16);
    let registry = Registry::new();
    let _attachment = small.0.attach(&registry);
    let worker = maintenance(&registry);
    let mut points: Vec<_> = (0..300).map(|n| worker.publish(format!("u{n}"), "u")).collect();
    for point in &mut points {
        publish(point, FIRST, &held_by("one"));
    }
    assert_eq!(small.0.segment().count().unwrap(), 64);
    assert_eq!(worker.report().published, 300);
}

#[test]
fn files_that_are_none_harm_only_their_own_rows() {
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let _attachment = scratch.attach(&registry);
    let mut point = maintenance(&registry).publish("u1", "orders");
    publish(&mut point, FIRST + 7, &held_by("one"));
    let good = scratch.file();
    let bytes = fs::read(&good).unwrap();
    let plant = |name: &str, bytes: &[u8]| fs::write(scratch.path().join(name), bytes).unwrap();
    plant("0-empty.holdgap", b"");
    plant("1-short.holdgap", &bytes[..5_000]);
    plant("2-cut.holdgap", &bytes[..bytes.len() - 5_000]);
    plant("3-other.holdgap", &vec![0xa5; bytes.len()]);
    let mut newer = bytes.clone();
    newer[8] = 99;
    plant("4-newer.holdgap", &newer);
    symlink(&good, scratch.path().join("5-link.holdgap")).unwrap();
    fs::create_dir(scratch.path().join("6-folder.holdgap")).unwrap();
    run("mkfifo", &[scratch.path().join("7-fifo.holdgap").to_str().unwrap()]);
    plant("8-anothers.holdgap", &bytes);
    std::os::unix::fs::chown(scratch.path().join("8-anothers.holdgap"), Some(12_345), None)
        .unwrap();
    plant("9-unfinished.making", &bytes);

    let look = Folder::open(scratch.path()).unwrap().look().unwrap();
    let reasons: Vec<_> = look.unreadable.iter().map(|(_, why)| why.reason()).collect();
    let expected = [
        "short",
        "short",
        "short",
        "corrupt",
        "version",
        "not_a_file",
        "not_a_file",
        "not_a_file",
        "owner",
    ];
    assert_eq!(reasons, expected, "{:?}", look.unreadable);
    assert!(look.unreadable.contains(&("4-newer.holdgap".to_owned(), Unreadable::Version(99))));
    assert_eq!(look.segments.len(), 1);
    assert_eq!(look.segments[0].reports().unwrap()[0].published, 1);
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error_and_no_signal() {
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let attachment = scratch.attach(&registry);
    let points: Vec<_> =
        (0..50).map(|n| maintenance(&registry).publish::<u64>(format!("u{n}"), "u")).collect();
    // A copy, so that this process's own mapping stays whole.
    let copy = scratch.path().join("copy.holdgap");
    fs::copy(scratch.file(), &copy).unwrap();
    let look = Folder::open(scratch.path()).unwrap().look().unwrap();
    assert_eq!(look.segments.len(), 2);
    OpenOptions::new().write(true).open(&copy).unwrap().set_len(140_000).unwrap();
    let counts: Vec<_> = look.segments.iter().map(|segment| segment.count()).collect();
    assert!(counts.contains(&Err(Unreadable::Short)) && counts.contains(&Ok(50)), "{counts:?}");
    drop((points, attachment));
}

/// Whatever somebody writes into a file, it is read or refused, and never more than that.
#[test]
fn no_change_of_a_files_bytes_leads_anywhere() {
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let attachment = scratch.attach(&registry);
    let mut points: Vec<_> =
        (0..10).map(|n| maintenance(&registry).publish(format!("u{n}"), "u")).collect();
    points.iter_mut().for_each(|point| publish(point, FIRST, &held_by("one")));
    let bytes = fs::read(scratch.file()).unwrap();
    drop((points, attachment));
    let path = scratch.path().join("hostile.holdgap");
    fs::write(&path, &bytes).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    // Where the header, the first entry, and the first slot's parts stand.
    let places = [
        (0, 300),
        (4_096, 128),
        (135_168, 64),
        (135_168 + 64 * 64, 112),
        (135_168 + 64 * 176, 1_536),
    ];
    let (mut read, mut refused) = (0, 0);
    for round in 0..4_000 {
        let (from, len) = places[round % places.len()];
        let at = from + random(len / 8) * 8;
        let word = match random(4) {
            0 => random(u64::MAX),
            1 => u64::MAX,
            2 => random(1 << 20),
            _ => 1 << random(64),
        };
        file.write_all_at(&word.to_ne_bytes(), at).unwrap();
        let look = Folder::open(scratch.path()).unwrap().look().unwrap();
        match look.segments.first() {
            Some(segment) => {
                read += 1;
                let _ = (segment.reports(), segment.points(), segment.look(3));
            }
            None => refused += 1,
        }
        file.write_all_at(&bytes[at as usize..][..8], at).unwrap();
    }
    assert!(read > 500 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn what_a_killed_process_left_half_made_is_swept_when_it_is_old() {
    let scratch = Scratch::new();
    let mut publisher = Publisher::start(&scratch, 1);
    publisher.wait(&scratch, 1);
    publisher.kill();
    let half = scratch.path().join("1-2.making");
    File::create(&half).unwrap();
    let folder = Folder::open(scratch.path()).unwrap();
    folder.sweep(Duration::from_secs(3_600)).unwrap();
    assert!(half.exists(), "somebody may be at it");
    std::thread::sleep(Duration::from_millis(2_100));
    folder.sweep(Duration::from_secs(1)).unwrap();
    assert!(!half.exists());
    folder.remove(&scratch.segment()).unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}
