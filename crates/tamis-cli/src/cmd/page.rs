use crate::{Exit, human};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tamis::internals::file::{Existing, Replacement};

/// Writes the page into a folder, created if missing. Replaces an earlier version of the page; refuses a folder with
/// other files.
pub(super) fn save(dir: &Path) -> Result<Exit> {
    let files: Vec<_> = tamis_serve::page_files()
        .map(|(name, content)| (dir.join(name), content))
        .collect();
    refuse_others(dir, &files)?;
    let mut made = Made::default();
    made.folders(&files)?;
    // All files are written before any is renamed into place: a failure changes nothing.
    let mut written = Vec::new();
    for (path, content) in &files {
        let mut file = Replacement::begin(path, Existing::Replace)?;
        let done = file.file().write_all(content);
        done.with_context(|| format!("writing {}", path.display()))?;
        written.push(file);
    }
    // The first file loads the others, so it comes last.
    for file in written.into_iter().rev() {
        file.place()?;
    }
    made.keep();
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    say!(
        "wrote {} and {} other files, {}",
        files[0].0.display(),
        files.len() - 1,
        human::size(bytes as u64)
    );
    say!(
        "hint: browsers run it from a web server only: \
         python3 -m http.server --bind 127.0.0.1 --directory {}",
        dir.display()
    );
    Ok(Exit::Done)
}

/// Refuses a folder that holds anything else.
fn refuse_others(dir: &Path, files: &[(PathBuf, &[u8])]) -> Result<()> {
    let is_ours = |path: &Path| files.iter().any(|(ours, _)| ours == path);
    let holds_ours = |path: &Path| files.iter().any(|(ours, _)| ours.parent() == Some(path));
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                bail!("{}: expected a folder, got a file", folder.display())
            }
            entries => entries.with_context(|| format!("reading {}", folder.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
            let path = entry.path();
            let is_folder = entry.file_type()?.is_dir();
            let is_of_page = if is_folder {
                holds_ours(&path)
            } else {
                is_ours(&path)
            };
            if !is_of_page {
                bail!(
                    "{} is not a file of the page\n\
                     hint: name a new or an empty folder, or remove it if an earlier version left it",
                    path.display()
                );
            }
            if is_folder {
                folders.push(path);
            }
        }
    }
    Ok(())
}

/// Folders that we created; removed again if a later step fails.
#[derive(Default)]
struct Made(Vec<PathBuf>);

impl Made {
    fn folders(&mut self, files: &[(PathBuf, &[u8])]) -> Result<()> {
        let folders: BTreeSet<_> = files.iter().filter_map(|(path, _)| path.parent()).collect();
        for folder in folders {
            // A relative path has the empty path as an ancestor, which always exists.
            let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
            let missing: Vec<_> = folder.ancestors().take_while(is_missing).collect();
            for folder in missing.into_iter().rev() {
                let made = fs::create_dir(folder);
                made.with_context(|| format!("making the folder {}", folder.display()))?;
                self.0.push(folder.to_owned());
            }
        }
        Ok(())
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // Keeps the folder if another process put something in it.
            let _ = fs::remove_dir(folder);
        }
    }
}
