//! All built-in tools, made from settings.

use std::path::PathBuf;
use std::sync::Arc;

use baton_core::{AgentLibrary, Store, Tool};

use crate::agents::AgentDrafts;
use crate::ask_user::AskUser;
use crate::diff_agent::DiffAgent;
use crate::documents::DocumentReader;
use crate::list_files::ListFiles;
use crate::process::ProcessSettings;
use crate::python::{Python, PythonSettings};
use crate::read_file::ReadFile;
use crate::read_output::ReadOutput;
use crate::save_agent::SaveAgent;
use crate::save_skill::SaveSkill;
use crate::search::corpus::Corpora;
use crate::search_docs::{DocFolders, SearchDocs};
use crate::semantic_search::{EmbeddingSettings, SemanticSearch};
use crate::shell::Shell;
use crate::skills::{SkillFolder, SkillLibrary};
use crate::validate_agent::ValidateAgent;
use crate::validate_skill::ValidateSkill;
use crate::web::Reach;
use crate::web_fetch::WebFetch;
use crate::web_search::{WebSearch, WebSearchSettings};
use crate::wiki::{Wiki, WikiSettings};
use crate::write_agent::WriteAgent;
use crate::write_file::WriteFile;
use crate::write_skill::WriteSkill;

/// The place that tools which know Agent Skills share.
pub const SKILLS_DIR: &str = ".agents/skills";

/// What an operator decides. Paths are absolute, or relative to the folder the process runs in.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// What `search_docs` searches, and `read_file` reads if the work folder has no such file.
    pub docs: DocFolders,
    /// How PDF and office documents are read.
    pub reader: DocumentReader,
    /// What file tools neither read nor write beside hidden files and `baton.toml`: the agent folders, the database, the
    /// workspaces of others. Relative paths start at the work folder.
    pub protected: Vec<PathBuf>,
    /// The shared skills.
    pub skills: SkillFolder,
    /// Which addresses `web_fetch` may reach beside the public ones.
    pub web: Reach,
    /// Where the vectors of `semantic_search` come from. `None`: it ranks by words only.
    pub embedding: Option<EmbeddingSettings>,
    /// `None` leaves the tool `web_search` out.
    pub web_search: Option<WebSearchSettings>,
    /// `None` leaves the tool `wiki` out.
    pub wiki: Option<WikiSettings>,
    /// `None` leaves the tool `shell` out.
    pub shell: Option<ProcessSettings>,
    /// `None` leaves the tool `python` out.
    pub python: Option<PythonSettings>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            docs: DocFolders { shared: vec![PathBuf::from("docs")], ..DocFolders::default() },
            reader: DocumentReader::default(),
            protected: vec![PathBuf::from("agents")],
            skills: SkillFolder::new(SKILLS_DIR),
            web: Reach::default(),
            embedding: None,
            web_search: None,
            wiki: None,
            shell: None,
            python: None,
        }
    }
}

/// The tools of [`baton_core::agent::BUILT_IN_TOOLS`], sorted by name, without those that have no settings. Created skills and
/// what `read_output` reads are in `store`. Without `library` no agent can be created.
pub fn built_in(
    settings: &ToolSettings,
    store: &Arc<dyn Store>,
    library: Option<&Arc<dyn AgentLibrary>>,
) -> Vec<Arc<dyn Tool>> {
    let skills = SkillLibrary::new(settings.skills.clone(), Arc::clone(store));
    let drafts = AgentDrafts::new(Arc::clone(store), library.cloned());
    let (docs, protected) = (&settings.docs, &settings.protected);
    let (skill_files, reader) = (settings.skills.dir().to_owned(), &settings.reader);
    let read_file = ReadFile::new(protected.clone(), docs.clone(), skill_files, reader.clone());
    let corpora = Corpora::new(docs.clone(), protected, reader);
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(AskUser::default()),
        Arc::new(DiffAgent::new(drafts.clone())),
        Arc::new(ListFiles::without(protected.clone())),
        Arc::new(read_file),
        Arc::new(ReadOutput::new(Arc::clone(store))),
        Arc::new(SaveAgent::new(drafts.clone())),
        Arc::new(SaveSkill::new(skills.clone())),
        Arc::new(SearchDocs::new(corpora.clone())),
        Arc::new(SemanticSearch::new(corpora, settings.embedding.as_ref(), store)),
        Arc::new(ValidateAgent::new(drafts.clone())),
        Arc::new(ValidateSkill::new(skills.clone())),
        Arc::new(WebFetch::new(settings.web.clone())),
        Arc::new(WriteAgent::new(drafts)),
        Arc::new(WriteFile::new(protected.clone())),
        Arc::new(WriteSkill::new(skills.clone())),
    ];
    if let Some(search) = &settings.web_search {
        tools.push(Arc::new(WebSearch::new(search.clone())));
    }
    if let Some(wiki) = &settings.wiki {
        tools.push(Arc::new(Wiki::new(wiki.clone())));
    }
    if let Some(shell) = &settings.shell {
        tools.push(Arc::new(Shell::new(shell.clone())));
    }
    if let Some(python) = &settings.python {
        tools.push(Arc::new(Python::new(python.clone())));
    }
    tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
    tools
}
