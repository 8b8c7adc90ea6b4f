//! Writes results to a folder of files like the inputs, or to one stream.

use crate::packing::Encoder;
use crate::seen::Seen;
use crate::state::{Finished, State};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use crate::fault::{OutputError, Refused};
pub use crate::state::{Asked, UNFINISHED};

/// Receives the results of each input, in order.
pub trait Outputs: Send {
    /// Starts the results of an input.
    fn begin(&mut self, input: usize) -> Result<(), OutputError>;

    /// Writes some results.
    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError>;

    /// Ends the results of an input.
    fn end(&mut self, input: usize) -> Result<(), OutputError>;

    /// Whether [`save`](Self::save) does anything.
    fn can_save(&self) -> bool {
        false
    }

    /// Publishes the outputs that have ended, together with the filter that holds exactly their units; or alone, if the
    /// run doesn't change its filter.
    fn save(&mut self, seen: Option<&Seen>) -> Result<(), OutputError> {
        let _ = seen;
        Ok(())
    }
}

/// Writes all results to one stream.
pub struct Stream<W>(W);

impl<W: Write + Send> Stream<W> {
    /// Writes to `to`.
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

/// One file per input. Files appear complete, each together with a filter that holds its units, so that a killed run
/// can be resumed.
pub struct Folder {
    folder: PathBuf,
    /// The names of the outputs inside the folder.
    names: Vec<PathBuf>,
    /// The state of the inputs when the run began.
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

    /// How many outputs are in place; a resumed run continues after these.
    pub fn finished(&self) -> usize {
        self.state.listed()
    }

    /// The filter of the earlier run, if any.
    pub fn filter(&self) -> Option<PathBuf> {
        self.state.filter()
    }

    /// Whether only the cleanup of an earlier run is missing: it has already replaced the filter's own file.
    pub fn is_saved(&self) -> bool {
        self.state.is_saved()
    }

    /// Ends a successful run by removing what was needed to resume it.
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
