//! Configuration of the server that a program creates.

use std::path::PathBuf;

use baton_core::CallContext;

use super::ProcessSettings;

/// Files that configure a server in the folder of its project, and that the next start would use.
const FILES: [&str; 2] = [".mcp.json", "baton.toml"];
/// Added to the name of such a file if a program has created it.
const REFUSED: &str = ".refused";

/// Configuration that does not exist, so that the sandbox cannot hide it. RAII guard: what is there on drop was created by the program,
/// and is renamed.
pub(super) struct AbsentConfiguration(Vec<PathBuf>);

impl AbsentConfiguration {
    /// A thread's workspace has no configuration, and without a sandbox the operator trusts programs.
    pub(super) fn of(settings: &ProcessSettings, context: &CallContext) -> Self {
        if settings.sandbox.is_none() || context.workspace().is_some() {
            return Self(Vec::new());
        }
        let paths = FILES.iter().map(|name| context.work_dir.join(name));
        Self(paths.filter(|path| path.symlink_metadata().is_err()).collect())
    }

    /// Renames what the program has created, and returns a note for the model about each file.
    pub(super) fn refuse_created(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        for path in std::mem::take(&mut self.0) {
            if path.symlink_metadata().is_err() {
                continue;
            }
            let mut aside = path.clone().into_os_string();
            aside.push(REFUSED);
            if let Err(error) = std::fs::rename(&path, &aside) {
                tracing::warn!(path = %path.display(), %error, "a command has created configuration of the server");
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            notes.push(format!(
                "\n\nNote: {name} would configure the server; the file that the command made was renamed to {name}{REFUSED}."
            ));
        }
        notes
    }
}

impl Drop for AbsentConfiguration {
    fn drop(&mut self) {
        self.refuse_created();
    }
}
