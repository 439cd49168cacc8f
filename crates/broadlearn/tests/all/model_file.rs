//! Model files: damage of any kind is detected, saving is atomic.

use crate::support::has_groups;
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::model::FORMAT_VERSION;
use broadlearn::{Category, Model, Settings};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which notes the largest request of each thread.
struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    LARGEST.with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: every request goes to the system's allocator unchanged; the note touches a cell of this
// thread, which needs neither memory nor a destructor.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Larger than anything that a sound reader asks for while it reads one of the small files below:
/// its buffer takes 64 KiB.
const MUCH: usize = 1 << 20;

fn small_model(recipe: Recipe) -> Model {
    let x = Mat::from_fn(12, 2, |i, j| ((i + 2) * (j + 3) % 7) as f64);
    let y = Mat::from_fn(12, 1, |i, _| (i as f64).sin());
    let mut settings = Settings::recipe(recipe).enhancement_nodes(2).sigma(1.0).ridge(0.1);
    if has_groups(recipe) {
        settings = settings.feature_groups(2).feature_nodes(2);
    }
    settings.fit_regression(&x, &y).unwrap()
}

/// The message of the error, without a panic or a large request of memory on the way to it.
#[track_caller]
fn refused(bytes: &[u8], what: &str) -> String {
    LARGEST.set(0);
    let result = Model::from_bytes(bytes);
    assert!(LARGEST.get() < MUCH, "{what}: asked for {} bytes", LARGEST.get());
    match result {
        Ok(_) => panic!("{what}: accepted"),
        Err(error) => {
            assert_eq!(error.category(), Category::Model, "{what}: {error:?}");
            error.to_string()
        }
    }
}

#[test]
fn every_changed_byte_is_detected() {
    let bytes = small_model(Recipe::Unscaled).to_bytes().unwrap();
    let mut damaged = bytes.clone();
    for place in 0..bytes.len() {
        for pattern in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x55] {
            damaged[place] = bytes[place] ^ pattern;
            refused(&damaged, &format!("byte {place} of {}, pattern {pattern:#x}", bytes.len()));
        }
        // The bytes that mean something to the parser of the header.
        for byte in *b" \n\t\"\\{}[]:,0a\0" {
            if byte != bytes[place] {
                damaged[place] = byte;
                refused(&damaged, &format!("byte {place} of {} made {byte}", bytes.len()));
            }
        }
        damaged[place] = bytes[place];
    }
    assert!(Model::from_bytes(&damaged).is_ok());
}

#[test]
fn every_truncation_and_every_appended_byte_is_detected() {
    let bytes = small_model(Recipe::Classic).to_bytes().unwrap();
    for length in 0..bytes.len() {
        refused(&bytes[..length], &format!("{length} of {} bytes", bytes.len()));
    }
    for byte in 0..=255 {
        let longer: Vec<u8> = bytes.iter().copied().chain([byte]).collect();
        refused(&longer, &format!("{byte} appended"));
    }
    let twice = [bytes.as_slice(), bytes.as_slice()].concat();
    refused(&twice, "the file twice");
}

#[test]
fn a_header_length_beyond_the_file_takes_no_memory() {
    let bytes = small_model(Recipe::Rich).to_bytes().unwrap();
    let length = bytes.len() as u64;
    for wrong in [
        0,
        1,
        2,
        length - 8,
        length - 7,
        length,
        99_999_999,
        100_000_001,
        1 << 40,
        1 << 63,
        u64::MAX,
    ] {
        let lying = [&wrong.to_le_bytes(), &bytes[8..]].concat();
        refused(&lying, &format!("header of {wrong} bytes"));
    }
}

/// A file in its parts: the header as JSON and the numbers.
struct Parts {
    header: Value,
    numbers: Vec<u8>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        Self { header, numbers: bytes[8 + length..].to_vec() }
    }

    /// The file of these parts, with a checksum that is right.
    fn sealed(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        let zeros = "0".repeat(64);
        header["__metadata__"]["checksum"] = zeros.as_str().into();
        let mut text = serde_json::to_string(&header).unwrap();
        text += &" ".repeat(text.len().next_multiple_of(8) - text.len());
        let assemble = |text: &str| {
            [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &self.numbers].concat()
        };
        let digest = Sha256::digest(assemble(&text));
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assemble(&text.replacen(&zeros, &digits, 1))
    }

    fn description(&self) -> Value {
        serde_json::from_str(self.header["__metadata__"]["model"].as_str().unwrap()).unwrap()
    }

    fn set_description(&mut self, description: &Value) {
        self.header["__metadata__"]["model"] = description.to_string().into();
    }
}

/// Without this, the tests below would only ever meet a wrong checksum.
#[test]
fn a_file_sealed_by_hand_is_accepted() {
    for recipe in Recipe::ALL {
        let bytes = small_model(recipe).to_bytes().unwrap();
        let mut parts = Parts::of(&bytes);
        parts.set_description(&parts.description());
        let again = Model::from_bytes(&parts.sealed()).unwrap();
        assert!(again.to_bytes().unwrap() == bytes);
    }
}

#[test]
fn another_version_is_named_with_the_one_expected() {
    let mut parts = Parts::of(&small_model(Recipe::Rich).to_bytes().unwrap());
    for version in ["0", "1", "17", "", "2.0"] {
        parts.header["__metadata__"]["format_version"] = version.into();
        let message = refused(&parts.sealed(), version);
        assert!(message.contains(&format!("found format version {version}")), "{message}");
        assert!(
            message.contains(&format!("expected format version {FORMAT_VERSION}")),
            "{message}"
        );
    }
}

#[test]
fn a_foreign_safetensors_file_is_recognised() {
    let mut parts = Parts::of(&small_model(Recipe::Rich).to_bytes().unwrap());
    parts.header["__metadata__"]["format"] = "pt".into();
    assert!(refused(&parts.sealed(), "foreign").contains("another kind of safetensors file"));

    let header = br#"{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}  "#;
    let foreign = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat();
    refused(&foreign, "without metadata");
    refused(b"x1,x2,y\n1,2,3\n4,5,6\n7,8,9\n", "a table");
    refused(b"\x02\0\0\0\0\0\0\0{}", "an empty header");
}

#[test]
fn shapes_and_offsets_that_lie_are_detected() {
    let bytes = small_model(Recipe::Classic).to_bytes().unwrap();
    let names: Vec<String> = Parts::of(&bytes)
        .header
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| *name != "__metadata__")
        .cloned()
        .collect();
    assert!(names.iter().any(|name| name == "group.0.weights"), "{names:?}");
    for name in &names {
        let change = |what: &str, change: &dyn Fn(&mut Value)| {
            let mut parts = Parts::of(&bytes);
            change(&mut parts.header[name]);
            refused(&parts.sealed(), &format!("{name}: {what}"))
        };
        for shape in [
            json!([]),
            json!([0]),
            json!([1_000_000]),
            json!([1, 1, 1]),
            json!([u64::MAX]),
            json!([u64::MAX, u64::MAX]),
            json!([1_u64 << 32, 1_u64 << 32]),
            json!([1_u64 << 61]),
            json!([-1]),
            json!([1.5]),
        ] {
            change(&format!("shape {shape}"), &|info| info["shape"] = shape.clone());
        }
        for dtype in ["F32", "I64", "U8", "f64", ""] {
            change(dtype, &|info| info["dtype"] = dtype.into());
        }
        for offsets in [json!([0, 0]), json!([8, 0]), json!([0, u64::MAX]), json!([u64::MAX, 0])] {
            change(&format!("offsets {offsets}"), &|info| info["data_offsets"] = offsets.clone());
        }
        change("one more field", &|info| info["extra"] = 1.into());
        change("nothing", &|info| *info = Value::Null);

        // Another name: one tensor is missing then and one too many is there.
        let mut parts = Parts::of(&bytes);
        let header = parts.header.as_object_mut().unwrap();
        let info = header.remove(name).unwrap();
        header.insert(format!("{name}x"), info);
        refused(&parts.sealed(), &format!("{name} renamed"));
    }

    // The same numbers under a transposed shape: layout and checksum are right, the model is not.
    let mut parts = Parts::of(&bytes);
    let shape = parts.header["equations.p"]["shape"].clone();
    parts.header["equations.p"]["shape"] = json!([shape[1], shape[0]]);
    assert!(refused(&parts.sealed(), "transposed").contains("equations.p"));

    // A gap, and an overlap.
    for shift in [8_i64, -8] {
        let mut parts = Parts::of(&bytes);
        let offsets = parts.header["output.weights"]["data_offsets"].clone();
        let moved = |k: usize| offsets[k].as_i64().unwrap() + shift;
        parts.header["output.weights"]["data_offsets"] = json!([moved(0), moved(1)]);
        refused(&parts.sealed(), "moved by 8 bytes");
    }
}

#[test]
fn numbers_that_are_not_finite_are_detected() {
    let bytes = small_model(Recipe::Rich).to_bytes().unwrap();
    let parts = Parts::of(&bytes);
    let count = parts.numbers.len() / 8;
    // Fingerprints are integers, of which every pattern of bits is one.
    let offsets = &parts.header["ledger.fingerprints"]["data_offsets"];
    let fingerprints = offsets[0].as_u64().unwrap() / 8..offsets[1].as_u64().unwrap() / 8;
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for place in (0..count).filter(|place| !fingerprints.contains(&(*place as u64))) {
            let mut parts = Parts::of(&bytes);
            parts.numbers[8 * place..8 * place + 8].copy_from_slice(&bad.to_le_bytes());
            assert!(refused(&parts.sealed(), "not finite").contains("finite"));
        }
    }
}

#[test]
fn descriptions_that_contradict_the_numbers_are_detected() {
    let bytes = small_model(Recipe::Unscaled).to_bytes().unwrap();
    let sound = Parts::of(&bytes).description();
    let refuse = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut parts = Parts::of(&bytes);
        let mut description = sound.clone();
        change(&mut description);
        assert_ne!(description, sound, "{what}: nothing was changed");
        parts.set_description(&description);
        refused(&parts.sealed(), what);
    };
    for inputs in [json!(0), json!(1), json!(3), json!(u64::MAX), json!(-1), json!(null)] {
        refuse(&format!("inputs {inputs}"), &|model| model["inputs"] = inputs.clone());
    }
    for features in [
        json!([0, 0]),
        json!([0, 1]),
        json!([0, 3]),
        json!([1, 0]),
        json!([2, 2]),
        json!([0, u64::MAX]),
        json!([u64::MAX, u64::MAX]),
        json!(null),
    ] {
        let last = sound["groups"].as_array().unwrap().len() - 1;
        refuse(&format!("features {features}"), &|model| {
            model["groups"][last]["features"] = features.clone();
        });
    }
    refuse("no groups", &|model| model["groups"] = json!([]));
    refuse("a group less", &|model| drop(model["groups"].as_array_mut().unwrap().pop()));
    refuse("a constant more", &|model| {
        model["groups"].as_array_mut().unwrap().push(json!({"kind": "constant"}));
    });
    refuse("an unknown activation", &|model| model["groups"][0]["activation"] = "sine".into());
    refuse("an unknown kind of group", &|model| model["groups"][0]["kind"] = "sparse".into());
    refuse("another scaler", &|model| model["input_scaler"] = "rows".into());
    refuse("an unknown scaler", &|model| model["target_scaler"] = "other".into());
    refuse("two targets", &|model| {
        model["schema"]["target"]["names"].as_array_mut().unwrap().push("y2".into());
    });
    refuse("no targets", &|model| model["schema"]["target"]["names"] = json!([]));
    refuse("a column less", &|model| {
        drop(model["schema"]["inputs"].as_array_mut().unwrap().pop());
    });
    refuse("an indicator more", &|model| {
        model["schema"]["inputs"][0]["encoding"]["indicator"] = true.into();
    });
    refuse("an encoding for another kind", &|model| {
        model["schema"]["inputs"][0]["kind"] = "text".into();
    });
    refuse("another generator", &|model| model["generator"] = "mt19937".into());
    refuse("a ridge below 0", &|model| {
        model["settings"]["regularisation"]["ridge"] = (-1.0).into();
    });
    refuse("an unknown loss", &|model| model["report"]["loss"]["name"] = "cubic".into());
    refuse("another loss than was set", &|model| model["report"]["loss"]["name"] = "huber".into());
    refuse("a kernel below 0", &|model| model["report"]["loss"]["sigma"] = (-1.0).into());
    refuse("a shape out of range", &|model| {
        model["settings"]["criterion"] = json!({"name": "generalised", "shape": 3, "sigma": 1});
        model["report"]["loss"] = json!({"name": "generalised", "shape": 3, "sigma": 1});
    });
    refuse("an update without a factor", &|model| model["knowledge"]["updates"] = 3.into());
    refuse("more rows than there can be", &|model| model["rows"] = u64::MAX.into());
    refuse("more rows in R than there can be", &|model| {
        model["knowledge"]["rows"] = u64::MAX.into();
    });
    refuse("a ridge that is no ridge", &|model| model["knowledge"]["ridge"] = (-0.5).into());
    refuse("no equations", &|model| model["knowledge"] = Value::Null);
    refuse("a discriminant that is not there", &|model| model["discriminant"] = true.into());
    refuse("an unknown field", &|model| model["surprise"] = 1.into());
    for field in sound.as_object().unwrap().keys().filter(|field| *field != "knowledge") {
        refuse(&format!("no {field}"), &|model| {
            model.as_object_mut().unwrap().remove(field);
        });
    }
    let mut parts = Parts::of(&bytes);
    for text in ["", "null", "[]", "{", "7"] {
        parts.header["__metadata__"]["model"] = text.into();
        refused(&parts.sealed(), &format!("description `{text}`"));
    }
    let deep = "[".repeat(100_000);
    parts.header["__metadata__"]["model"] = deep.into();
    refused(&parts.sealed(), "a deep description");
}

#[test]
fn a_missing_file_and_a_folder_are_no_input() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("absent.broad")] {
        assert_eq!(Model::load(&path).unwrap_err().category(), Category::NoInput);
    }
    let path = folder.path().join("empty.broad");
    std::fs::write(&path, b"").unwrap();
    let error = Model::load(&path).unwrap_err();
    assert_eq!(error.category(), Category::Model);
    assert!(error.to_string().contains("empty.broad"), "{error}");
}

#[cfg(unix)]
mod saving {
    use super::small_model;
    use broadlearn::features::Recipe;
    use broadlearn::{Category, Model};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    fn names(folder: &Path) -> Vec<PathBuf> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_exactly_the_bytes_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (model, path) = (small_model(Recipe::Rich), folder.path().join("m.broad"));
        model.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), model.to_bytes().unwrap());
        assert_eq!(Model::load(&path).unwrap().to_bytes().unwrap(), model.to_bytes().unwrap());
        assert_eq!(names(folder.path()), [PathBuf::from("m.broad")]);
        // As any new file: what the umask leaves of rw-rw-rw-.
        let other = folder.path().join("other");
        fs::write(&other, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn the_mode_of_an_existing_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (model, path) = (small_model(Recipe::Rich), folder.path().join("m.broad"));
        for mode in [0o600, 0o640, 0o664, 0o666, 0o444, 0o777] {
            fs::write(&path, b"old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            model.save(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "{mode:o}");
            assert_eq!(fs::read(&path).unwrap(), model.to_bytes().unwrap());
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn through_a_link_the_target_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), elsewhere.path().join("target"));
        fs::write(&target, b"old").unwrap();
        symlink(&target, &link).unwrap();
        let model = small_model(Recipe::Rich);
        model.save(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), model.to_bytes().unwrap());
        assert_eq!(names(folder.path()), [PathBuf::from("link")]);
        assert_eq!(names(elsewhere.path()), [PathBuf::from("target")]);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let model = small_model(Recipe::Rich);
        let refused = |path: &Path| {
            let error = model.save(path).unwrap_err();
            assert_eq!(error.category(), Category::CannotCreate, "{error:?}");
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        };
        refused(&folder.path().join("absent/m.broad"));
        refused(folder.path());
        fs::write(folder.path().join("file"), b"").unwrap();
        refused(&folder.path().join("file/m.broad"));
        refused(Path::new("/proc/m.broad"));
        assert_eq!(names(folder.path()), [PathBuf::from("file")]);

        let locked = folder.path().join("locked");
        fs::create_dir(&locked).unwrap();
        fs::write(locked.join("old"), b"old").unwrap();
        fs::set_permissions(&locked, Permissions::from_mode(0o555)).unwrap();
        if fs::write(locked.join("probe"), b"").is_ok() {
            println!("not tested with a locked folder: this user may write everywhere");
        } else {
            refused(&locked.join("old"));
            refused(&locked.join("new"));
            assert_eq!(fs::read(locked.join("old")).unwrap(), b"old");
            assert_eq!(names(&locked), [PathBuf::from("old")]);
        }
        fs::set_permissions(&locked, Permissions::from_mode(0o755)).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_io_error() {
        let error = small_model(Recipe::Rich).save(Path::new("/dev/full")).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{error:?}");
        assert!(error.to_string().contains("/dev/full"), "{error}");
        assert!(Path::new("/dev/full").exists());
        small_model(Recipe::Rich).save(Path::new("/dev/null")).unwrap();
    }
}

fn small_ensemble() -> Model {
    let x = Mat::from_fn(12, 2, |i, j| ((i + 2) * (j + 3) % 7) as f64);
    let y = Mat::from_fn(12, 1, |i, _| (i as f64).sin());
    let settings = Settings::new().enhancement_nodes(2).sigma(1.0).ridge(0.1);
    settings.members(3).fit_regression(&x, &y).unwrap()
}

#[test]
fn damaged_ensembles_are_detected() {
    // Every seventh place: the tests of single models have all of them.
    let bytes = small_ensemble().to_bytes().unwrap();
    for length in (0..bytes.len()).step_by(7) {
        refused(&bytes[..length], &format!("{length} of {} bytes", bytes.len()));
    }
    let mut damaged = bytes.clone();
    for place in (0..bytes.len()).step_by(7) {
        damaged[place] ^= 0x04;
        refused(&damaged, &format!("byte {place} of {}", bytes.len()));
        damaged[place] ^= 0x04;
    }
    assert!(Model::from_bytes(&damaged).unwrap().to_bytes().unwrap() == bytes);
}

#[test]
fn members_that_do_not_belong_together_are_detected() {
    let bytes = small_ensemble().to_bytes().unwrap();
    let sound = Parts::of(&bytes).description();
    assert_eq!(sound["members"].as_array().unwrap().len(), 2);
    let refuse = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut parts = Parts::of(&bytes);
        let mut description = sound.clone();
        change(&mut description);
        assert_ne!(description, sound, "{what}: nothing was changed");
        parts.set_description(&description);
        refused(&parts.sealed(), what)
    };
    let message = refuse("settings of two", &|model| model["settings"]["members"] = json!(2));
    assert!(message.contains("found 3 members; expected 2"), "{message}");
    refuse("settings of one", &|model| {
        drop(model["settings"].as_object_mut().unwrap().remove("members"));
    });
    refuse("a member less", &|model| drop(model["members"].as_array_mut().unwrap().pop()));
    refuse("no members", &|model| model["members"] = json!([]));
    refuse("one more field", &|model| model["members"][0]["schema"] = model["schema"].clone());
    refuse("no seed", &|model| drop(model["members"][0].as_object_mut().unwrap().remove("seed")));
    refuse("members of one", &|model| {
        model["settings"]["members"] = json!(1);
        model["members"] = json!([]);
    });
    let message =
        refuse("another ridge", &|model| model["members"][1]["report"]["ridge"] = json!(0.2));
    assert!(message.contains("member 3"), "{message}");
    refuse("another sigma", &|model| model["members"][1]["report"]["loss"]["sigma"] = json!(2.0));
    refuse("another loss", &|model| model["members"][1]["report"]["loss"]["name"] = json!("huber"));
    refuse("other rows", &|model| model["members"][0]["knowledge"]["rows"] = json!(11));
    refuse("another ridge in R", &|model| model["members"][0]["knowledge"]["ridge"] = json!(0.2));
    refuse("one compact member", &|model| model["members"][0]["knowledge"] = json!(null));
    refuse("a decayed member", &|model| model["members"][0]["knowledge"]["decayed"] = json!(true));
    refuse("other groups", &|model| model["members"][1]["groups"][2]["activation"] = json!("relu"));

    // A row that one member has not learnt.
    let mut parts = Parts::of(&bytes);
    let place = parts.header["members.2.ledger.fingerprints"]["data_offsets"][0].as_u64().unwrap();
    parts.numbers[place as usize] ^= 1;
    assert!(refused(&parts.sealed(), "another row").contains("member 3"));
    // A tensor of no member.
    let mut parts = Parts::of(&bytes);
    let header = parts.header.as_object_mut().unwrap();
    let info = header.remove("members.2.output.weights").unwrap();
    header.insert("members.3.output.weights".into(), info);
    assert!(refused(&parts.sealed(), "renamed").contains("members.2.output.weights"));
}
