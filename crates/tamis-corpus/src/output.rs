//! Where results go: a folder of files like the inputs, or one stream.

use crate::packing::Encoder;
use crate::seen::Seen;
use crate::state::{Finished, State};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why an output could not be written.
#[derive(Debug)]
pub struct OutputError {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    pub cause: io::Error,
}

impl OutputError {
    pub(crate) fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self { path, cause }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "writing {}: {}", self.path.display(), self.cause)
    }
}

// The message names the cause already; as a `source`, it would be printed twice.
impl std::error::Error for OutputError {}

/// The folder, inside of that of the outputs, of a run that is not finished.
pub const UNFINISHED: &str = ".tamis-clean";

/// Takes the results of each input, in order.
pub trait Outputs: Send {
    /// The results of this input follow.
    fn begin(&mut self, input: usize) -> Result<(), OutputError>;

    /// Some of them.
    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError>;

    /// That was all of this input.
    fn end(&mut self, input: usize) -> Result<(), OutputError>;

    /// Whether [`save`](Self::save) does something.
    fn can_save(&self) -> bool {
        false
    }

    /// Makes what ended so far visible, together with the filter that knows its units, and no others; or alone, if the
    /// run does not change its filter.
    fn save(&mut self, seen: Option<&Seen>) -> Result<(), OutputError> {
        let _ = seen;
        Ok(())
    }
}

/// All results one after the other.
pub struct Stream<W>(W);

impl<W: Write + Send> Stream<W> {
    /// Writes to this.
    pub fn new(to: W) -> Self {
        Self(to)
    }
}

impl<W: Write + Send> Outputs for Stream<W> {
    fn begin(&mut self, _: usize) -> Result<(), OutputError> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.0
            .write_all(bytes)
            .map_err(OutputError::of(Path::new("the output")))
    }

    fn end(&mut self, _: usize) -> Result<(), OutputError> {
        self.0
            .flush()
            .map_err(OutputError::of(Path::new("the output")))
    }
}

/// What a run into a folder is asked to do. One that is continued must be asked for the same.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// A description of all that decides on the outputs.
    pub options: String,
    /// The filter's own file, so that one that was replaced is told from the one before.
    pub filter: String,
    /// Whether outputs that are there already are replaced. An earlier run is continued only if that was asked so, too,
    /// and forgotten if it was another one.
    pub force: bool,
}

/// A file for each input. Files appear whole, each together with a filter that knows its units, so that a run that was
/// killed can go on.
pub struct Folder {
    folder: PathBuf,
    /// The names of the outputs inside of the folder.
    names: Vec<PathBuf>,
    /// What the inputs were when the run began.
    inputs: Vec<Finished>,
    state: State,
    open: Option<(PathBuf, Encoder)>,
}

impl Folder {
    /// Prepares a folder for outputs with these names.
    pub fn begin(
        folder: &Path,
        names: Vec<PathBuf>,
        inputs: &[PathBuf],
        asked: &Asked,
    ) -> Result<Self, Refused> {
        let failed = |path: &Path, cause| Refused::Failed(OutputError::of(path)(cause));
        fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
        let inputs = inputs.iter().zip(&names);
        let inputs: Vec<Finished> = inputs
            .map(|(path, name)| Finished::of(path, name))
            .collect();
        let state = State::open(folder, &inputs, asked)?;
        Ok(Self {
            folder: folder.to_owned(),
            names,
            inputs,
            state,
            open: None,
        })
    }

    /// How many outputs have their names: a run that is started again goes on behind them.
    pub fn finished(&self) -> usize {
        self.state.listed()
    }

    /// The filter of the earlier run, if there was one.
    pub fn filter(&self) -> Option<PathBuf> {
        self.state.filter()
    }

    /// Whether an earlier run has done everything but to say so: the filter's own file is replaced already.
    pub fn is_saved(&self) -> bool {
        self.state.is_saved()
    }

    /// Ends a run that went well: what it needed to go on is removed.
    pub fn finish(self) -> Result<(), OutputError> {
        self.state.remove()
    }
}

impl Outputs for Folder {
    fn begin(&mut self, input: usize) -> Result<(), OutputError> {
        let staged = self.state.staged(input);
        let create = || -> io::Result<Encoder> {
            Encoder::by_name(&self.names[input], File::create(&staged)?)
        };
        let encoder = create().map_err(OutputError::of(&self.folder.join(&self.names[input])))?;
        self.open = Some((staged, encoder));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        match &mut self.open {
            Some((staged, encoder)) => encoder.write_all(bytes).map_err(OutputError::of(staged)),
            None => Ok(()),
        }
    }

    fn end(&mut self, input: usize) -> Result<(), OutputError> {
        if let Some((staged, encoder)) = self.open.take() {
            let file = encoder.finish().map_err(OutputError::of(&staged))?;
            file.sync_all().map_err(OutputError::of(&staged))?;
            self.state.end(self.inputs[input].clone());
        }
        Ok(())
    }

    fn can_save(&self) -> bool {
        true
    }

    fn save(&mut self, seen: Option<&Seen>) -> Result<(), OutputError> {
        self.state.save(seen)
    }
}

/// Why a folder can't take the outputs of a run.
#[derive(Debug)]
pub enum Refused {
    /// The system refused something.
    Failed(OutputError),
    /// An output is there already.
    Exists(PathBuf),
    /// Two inputs would have one output, or the output of one would be the folder of another's.
    OneName(PathBuf),
    /// An earlier run was not finished, and was another one: this differs.
    AnotherRun(String),
}
