//! All built-in tools, made from settings.

use std::path::PathBuf;
use std::sync::Arc;

use baton_core::{Store, Tool};

use crate::ask_user::AskUser;
use crate::list_files::ListFiles;
use crate::read_file::ReadFile;
use crate::read_output::ReadOutput;
use crate::save_skill::SaveSkill;
use crate::search_docs::{DocFolders, SearchDocs};
use crate::shell::{Shell, ShellSettings};
use crate::skills::{SkillFolder, SkillLibrary};
use crate::validate_skill::ValidateSkill;
use crate::web::Reach;
use crate::web_fetch::WebFetch;
use crate::write_file::WriteFile;
use crate::write_skill::WriteSkill;

/// The place that tools which know Agent Skills share.
pub const SKILLS_DIR: &str = ".agents/skills";

/// What an operator decides. Paths are absolute, or relative to the folder the process runs in.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// What `search_docs` searches, and `read_file` reads if the work folder has no such file.
    pub docs: DocFolders,
    /// What file tools neither read nor write beside hidden files and `baton.toml`: the agent folders, the database, the
    /// workspaces of others. Relative paths start at the work folder.
    pub protected: Vec<PathBuf>,
    /// The shared skills.
    pub skills: SkillFolder,
    /// Which addresses `web_fetch` may reach beside the public ones.
    pub web: Reach,
    /// `None` leaves the tool `shell` out.
    pub shell: Option<ShellSettings>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            docs: DocFolders { shared: vec![PathBuf::from("docs")], ..DocFolders::default() },
            protected: vec![PathBuf::from("agents")],
            skills: SkillFolder::new(SKILLS_DIR),
            web: Reach::default(),
            shell: None,
        }
    }
}

/// The tools of [`baton_core::agent::BUILT_IN_TOOLS`], sorted by name; without `shell` unless it is enabled. Created skills
/// and what `read_output` reads are in `store`.
pub fn built_in(settings: &ToolSettings, store: &Arc<dyn Store>) -> Vec<Arc<dyn Tool>> {
    let skills = SkillLibrary::new(settings.skills.clone(), Arc::clone(store));
    let (docs, protected) = (&settings.docs, &settings.protected);
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(AskUser::default()),
        Arc::new(ListFiles::without(protected.clone())),
        Arc::new(ReadFile::new(protected.clone(), docs.clone(), settings.skills.dir().to_owned())),
        Arc::new(ReadOutput::new(Arc::clone(store))),
        Arc::new(SaveSkill::new(skills.clone())),
        Arc::new(SearchDocs::new(docs.clone(), protected)),
        Arc::new(ValidateSkill::new(skills.clone())),
        Arc::new(WebFetch::new(settings.web.clone())),
        Arc::new(WriteFile::new(protected.clone())),
        Arc::new(WriteSkill::new(skills.clone())),
    ];
    if let Some(shell) = &settings.shell {
        tools.push(Arc::new(Shell::new(shell.clone())));
    }
    tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
    tools
}
