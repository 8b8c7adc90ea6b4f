//! What a killed run needs to resume: a folder inside the output folder.
//!
//! Outputs are first written there. Saving takes these steps, in this order: write the filter under a new name;
//! atomically replace the list of finished inputs, which names that filter; give the outputs their own names. If the
//! run dies at any point, the list and its filter agree, and the next run renames listed outputs that still need it.

use crate::fault::{OutputError, Refused};
use crate::seen::Seen;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tamis::internals::file::{Existing, Replacement};

/// The folder of an unfinished run, inside the output folder.
pub const UNFINISHED: &str = ".tamis-clean";
const LIST: &str = "finished.json";
const VERSION: u64 = 1;

/// The parameters of a run into a folder. A resumed run must have the same.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// A description of all options that affect the outputs.
    pub options: String,
    /// Identifies the filter's file, to detect that it was replaced.
    pub filter: String,
    /// Whether existing outputs are replaced. An earlier run with the same parameters is only resumed if it had this
    /// set, too; an earlier run with others is discarded.
    pub force: bool,
}

/// An input that is finished, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    path: String,
    /// The name of its output inside the folder.
    name: PathBuf,
    /// Its length and modification time: with other content it is another input.
    bytes: u64,
    written: u64,
}

impl Finished {
    pub(crate) fn of(path: &Path, name: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        let written = metadata
            .as_ref()
            .and_then(|metadata| metadata.modified().ok());
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            path: path.display().to_string(),
            name: name.to_owned(),
            bytes: metadata.map_or(0, |metadata| metadata.len()),
            written: written.map_or(0, |time| time.as_nanos() as u64),
        }
    }

    fn to_json(&self) -> Value {
        let name = self.name.display().to_string();
        json!({ "input": self.path, "output": name, "bytes": self.bytes, "written": self.written })
    }

    fn is(&self, listed: &Value) -> bool {
        *listed == self.to_json()
    }
}

/// The system's error, without the path, which the library's error would repeat.
fn refused(path: &Path) -> impl FnOnce(tamis::Error) -> OutputError {
    |error| {
        OutputError::of(path)(match error {
            tamis::Error::Io { source, .. } => source,
            other => io::Error::other(other),
        })
    }
}

/// The folder and its list.
pub(crate) struct State {
    folder: PathBuf,
    options: String,
    filter_was: String,
    force: bool,
    is_saved: bool,
    finished: Vec<Finished>,
    /// The index in `finished` of the first output that is written but not listed.
    listed: usize,
    /// The number in the filter's name; 0 if there is no filter.
    generation: u64,
}

impl State {
    /// Opens the state of an earlier run, or starts a new one.
    pub(crate) fn open(
        outputs: &Path,
        inputs: &[Finished],
        asked: &Asked,
    ) -> Result<Self, Refused> {
        let mut names: Vec<&Path> = inputs.iter().map(|input| &*input.name).collect();
        names.sort_unstable();
        // In this order, a path inside a folder directly follows the folder.
        if let Some(twice) = names.windows(2).find(|two| two[1].starts_with(two[0])) {
            return Err(Refused::OneName(twice[0].to_owned()));
        }
        let mut state = Self {
            folder: outputs.join(UNFINISHED),
            options: asked.options.clone(),
            filter_was: asked.filter.clone(),
            force: asked.force,
            is_saved: false,
            finished: Vec::new(),
            listed: 0,
            generation: 0,
        };
        let folder = state.folder.clone();
        let failed = |cause| Refused::Failed(OutputError::of(&folder)(cause));
        match fs::read(state.folder.join(LIST)) {
            Ok(list) => match state.resume(&list, inputs) {
                Ok(finished) => {
                    state.finished = inputs[..finished].to_vec();
                    state.listed = finished;
                }
                Err(_) if asked.force => {
                    (state.generation, state.is_saved) = (0, false);
                    fs::remove_dir_all(&folder).map_err(failed)?;
                }
                Err(why) => return Err(Refused::AnotherRun(why)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        state.place().map_err(Refused::Failed)?;
        for input in &inputs[state.finished.len()..] {
            let path = outputs.join(&input.name);
            if path.exists() && !asked.force {
                return Err(Refused::Exists(path));
            }
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        Ok(state)
    }

    /// Reads the list; returns the number of finished inputs.
    fn resume(&mut self, list: &[u8], inputs: &[Finished]) -> Result<usize, String> {
        let list: Value =
            serde_json::from_slice(list).map_err(|error| format!("its list: {error}"))?;
        if list["version"] != VERSION {
            return Err(format!(
                "its list is of version {}, expected {VERSION}",
                list["version"]
            ));
        }
        if list["options"] != *self.options {
            let theirs = list["options"].as_str().unwrap_or("unknown");
            return Err(format!(
                "its options were {theirs}, now they are {}",
                self.options
            ));
        }
        if self.force && list["force"] != true {
            return Err("outputs were not to be replaced".to_owned());
        }
        self.is_saved = list["filter_was"] != *self.filter_was;
        let finished = list["finished"].as_array().map_or(&[][..], Vec::as_slice);
        for (at, listed) in finished.iter().enumerate() {
            if !inputs.get(at).is_some_and(|input| input.is(listed)) {
                return Err(format!(
                    "its input number {} was {listed}, which is not what is there now",
                    at + 1
                ));
            }
            if inputs[at].path == "-" {
                return Err(format!(
                    "its input number {} was standard input, which can't be told from another one",
                    at + 1
                ));
            }
            let name = &inputs[at].name;
            if !self.staged(at).exists() && !self.outputs().join(name).exists() {
                return Err(format!("its output {} is gone", name.display()));
            }
        }
        // The filter's own file is only replaced after everything else is done.
        if self.is_saved && finished.len() < inputs.len() {
            let was = list["filter_was"].as_str().unwrap_or("unknown");
            return Err(format!(
                "its filter was {was}, now it is {}",
                self.filter_was
            ));
        }
        self.generation = list["filter"].as_u64().unwrap_or(0);
        if self.generation > 0 && finished.len() < inputs.len() && self.filter().is_none() {
            return Err("its filter is missing".to_owned());
        }
        Ok(finished.len())
    }

    /// How many inputs are finished and listed as such.
    pub(crate) const fn listed(&self) -> usize {
        self.listed
    }

    fn outputs(&self) -> &Path {
        self.folder.parent().unwrap_or(Path::new("."))
    }

    /// Whether only the cleanup is missing: the filter's own file is already replaced.
    pub(crate) const fn is_saved(&self) -> bool {
        self.is_saved
    }

    /// The filter that the list names.
    pub(crate) fn filter(&self) -> Option<PathBuf> {
        let filter = (self.generation > 0).then(|| self.filter_of(self.generation));
        // A run killed at its very end has already removed it.
        filter.filter(|filter| filter.exists())
    }

    fn filter_of(&self, generation: u64) -> PathBuf {
        self.folder.join(format!("seen-{generation}.tamis"))
    }

    /// Where the output of this input is first written.
    pub(crate) fn staged(&self, input: usize) -> PathBuf {
        self.folder.join(format!("output-{input}"))
    }

    /// Notes that an output is written.
    pub(crate) fn end(&mut self, input: Finished) {
        self.finished.push(input);
    }

    /// See the top of this file.
    pub(crate) fn save(&mut self, seen: Option<&Seen>) -> Result<(), OutputError> {
        let old = self.filter();
        if let Some(seen) = seen {
            let filter = self.filter_of(self.generation + 1);
            seen.save(&filter).map_err(refused(&filter))?;
            self.generation += 1;
        }
        self.write_list()?;
        self.place()?;
        if let (Some(_), Some(old)) = (seen, old) {
            // If this fails, the file is removed with the folder.
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    fn write_list(&self) -> Result<(), OutputError> {
        let path = self.folder.join(LIST);
        let finished: Vec<Value> = self.finished.iter().map(Finished::to_json).collect();
        let list = json!({
            "version": VERSION,
            "options": self.options,
            "filter_was": self.filter_was,
            "filter": self.generation,
            "force": self.force,
            "finished": finished,
        });
        let mut file = Replacement::begin(&path, Existing::Replace).map_err(refused(&path))?;
        write!(file.file(), "{list:#}").map_err(OutputError::of(&path))?;
        file.place().map_err(refused(&path))?;
        Ok(())
    }

    /// Renames listed outputs into place, if they aren't yet.
    fn place(&mut self) -> Result<(), OutputError> {
        let outputs = self.outputs();
        let first = if self.listed == self.finished.len() {
            0
        } else {
            self.listed
        };
        for (at, input) in self.finished.iter().enumerate().skip(first) {
            let (staged, path) = (self.staged(at), outputs.join(&input.name));
            if !staged.exists() {
                continue;
            }
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(OutputError::of(folder))?;
            }
            fs::rename(&staged, &path).map_err(OutputError::of(&path))?;
        }
        self.listed = self.finished.len();
        Ok(())
    }

    /// Removes the folder, the list last: without the list, the outputs would look like another run's.
    pub(crate) fn remove(self) -> Result<(), OutputError> {
        let failed = || OutputError::of(&self.folder);
        for entry in fs::read_dir(&self.folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            if entry.file_name() != LIST {
                fs::remove_file(entry.path()).map_err(failed())?;
            }
        }
        fs::remove_dir_all(&self.folder).map_err(failed())
    }
}
