//! A folder with tables, the command run in it, and what came of it.

use assert_cmd::Command;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder with a few tables and, on demand, a model.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        let mut table = String::from("a,b,colour,y\n");
        for i in 0..120 {
            let (a, b) = (f64::from(i % 17), f64::from(i % 7) - 3.0);
            let colour = ["red", "green", "blue"][i as usize % 3];
            let _ = writeln!(table, "{a},{b},{colour},{}", 2.0 * a - b * b + f64::from(i % 3));
        }
        bench.write("ok.csv", &table);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &str, stdin: &str) -> Outcome {
        let output = Command::cargo_bin("broadlearn")
            .unwrap()
            .current_dir(self.folder.path())
            .args(arguments.split_whitespace())
            .write_stdin(stdin)
            .output()
            .unwrap();
        Outcome {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn fit(&self) {
        let outcome = self.run("fit ok.csv --target y --ridge 1e-3 --sigma 1 --model ok.broad");
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }

    /// Nothing but the tables may be there: no model, no half-written file.
    pub(crate) fn assert_nothing_written(&self) {
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name.ends_with(".csv"), "{name} was left behind");
        }
    }
}

pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// What was printed, if all went well.
    #[track_caller]
    pub(crate) fn ok(&self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout.clone()
    }

    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "");
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}
