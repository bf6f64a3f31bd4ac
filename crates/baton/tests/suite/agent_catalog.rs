//! K2: what a created agent may be, decided by the catalog with a real store and real files.

use std::path::Path;
use std::sync::{Arc, Mutex};

use baton::agent_catalog::AgentCatalog;
use baton::project::Project;
use baton_agents::{KnownNames, Roster, RosterDraft, SourceFile};
use baton_core::agent::ToolPattern;
use baton_core::store::{AuditEntry, NewAgent};
use baton_core::{
    AgentCheck, AgentLibrary, AgentName, CallContext, CheckedAgent, Permission, Rights, RunId, SessionId,
    Store, TenantId, ThreadId, UserId,
};
use baton_tools::agents::AgentDrafts;
use tempfile::TempDir;

const CONFIG: &str = "[tenants.small]\nagents = [\"assistant\"]\n";

struct World {
    _dir: TempDir,
    project: Project,
    store: Arc<dyn Store>,
    catalog: Arc<AgentCatalog>,
}

fn id(text: &str) -> TenantId {
    TenantId::parse(text).unwrap()
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn rights(list: &[&str]) -> Rights {
    list.iter().map(|text| Permission::parse(text).unwrap()).collect()
}

/// Two agents of files: one with a tool, one with another.
async fn world() -> World {
    world_of(&[("assistant", "tools: [search_docs]\n"), ("writer", "tools: [write_file]\n")]).await
}

async fn world_of(agents: &[(&str, &str)]) -> World {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    for (agent, head) in agents {
        let text =
            format!("---\nname: {agent}\ndisplay_name: {agent}\ndescription: Helps.\n{head}---\nHelp.\n");
        std::fs::write(dir.path().join("agents").join(format!("{agent}.md")), text).unwrap();
    }
    let file = dir.path().join("baton.toml");
    std::fs::write(&file, CONFIG).unwrap();
    let project = Project::open(dir.path(), Some(&file), &[]).unwrap();
    let store: Arc<dyn Store> = Arc::new(baton_store::open("sqlite::memory:", Path::new("")).await.unwrap());
    let catalog = AgentCatalog::of_command(&project, Arc::clone(&store));
    World { _dir: dir, project, store, catalog }
}

fn file(called: &str, head: &str) -> String {
    format!("---\nname: {called}\ndisplay_name: The {called}\ndescription: Helps.\n{head}---\nHelp.\n")
}

impl World {
    async fn check(&self, tenant: &str, head: &str, rights: &Rights) -> CheckedAgent {
        let (tenant, called, text) = (id(tenant), name("helper"), file("helper", head));
        let check = AgentCheck { tenant: &tenant, name: &called, text: &text, rights };
        self.catalog.check(check).await.unwrap()
    }

    async fn save(&self, tenant: &str, called: &str, head: &str) {
        let agent = NewAgent {
            name: name(called),
            text: file(called, head),
            replaces: None,
            user_id: UserId::parse("ada").unwrap(),
            thread_id: None,
        };
        self.store.tenant(&id(tenant)).save_agent(agent, AuditEntry::default(), 10).await.unwrap();
    }
}

/// Tools that no agent of the tenant has, keys that decide about rights, patterns, agents that the tenant does not have, and
/// collaborators of a person who may not delegate are refused at their place.
#[tokio::test]
async fn k2_created_agent_gets_no_more_than_agents_of_files_have() {
    let world = world().await;
    let (all, few) = (Rights::all(), rights(&["agent:write"]));
    for (tenant, head, rights, expected) in [
        ("acme", "tools: [search_docs, write_file]\nagents: [assistant]\n", &all, None),
        ("acme", "tools: [search_docs]\n", &few, None),
        (
            "acme",
            "tools: [search_docs, shell]\n",
            &all,
            Some("line 5, column 22: no other agent has the tool `shell`"),
        ),
        ("acme", "tools: [serch_docs]\n", &all, Some("line 5, column 9: ")),
        ("acme", "tools: ['*']\n", &all, Some("is a pattern")),
        (
            "acme",
            "approvals: { auto: [search_docs] }\n",
            &all,
            Some("line 5, column 1: a created agent cannot set `approvals`"),
        ),
        (
            "acme",
            "mcp_servers: { x: { command: sh } }\n",
            &all,
            Some("line 5, column 1: a created agent cannot set"),
        ),
        ("acme", "sanitize: false\n", &all, Some("a created agent cannot set `sanitize`")),
        ("acme", "agents: [assistant]\n", &few, Some("needs the permission `orchestration:delegate`")),
        ("acme", "agents: [nobody]\n", &all, Some("line 5, column 10: no agent is called `nobody`")),
        ("small", "tools: [search_docs]\n", &all, None),
        (
            "small",
            "tools: [write_file]\n",
            &all,
            Some("line 5, column 9: no other agent has the tool `write_file`"),
        ),
        ("small", "agents: [writer]\n", &all, Some("line 5, column 10: no agent is called `writer`")),
    ] {
        let checked = world.check(tenant, head, rights).await;
        let problems: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
        match expected {
            None => assert!(checked.is_valid(), "{tenant} {head}: {problems:?}"),
            Some(text) => {
                assert!(
                    !checked.is_valid() && problems.iter().any(|one| one.contains(text)),
                    "{head}: {problems:?}"
                );
            }
        }
    }
}

/// A tool comes with the rules of the agents that have it: what they may not use is not given, what they ask about is asked about, and
/// `*` gives no tool of an MCP server. A line of the prompt cannot add agents to pass the conversation to.
#[tokio::test]
async fn k2_rules_of_file_agents_apply_to_created_ones() {
    let head = "tools: ['*']\napprovals: { ask: [write_file], deny: [web_fetch] }\n";
    let world = world_of(&[("careful", head)]).await;
    let (acme, all) = (id("acme"), Rights::all());
    for tool in ["web_fetch", "mcp:payments/refund"] {
        let checked = world.check("acme", &format!("tools: ['{tool}']\n"), &all).await;
        let refusal = format!("no other agent has the tool `{tool}`");
        let is_refused = checked.problems.iter().any(|problem| problem.to_string().contains(&refusal));
        assert!(is_refused, "{tool}: {:?}", checked.problems);
    }
    let (called, text) = (name("helper"), format!("{}\n**Collaborations**: careful\n", file("helper", "")));
    let checked = world.catalog.check(AgentCheck { tenant: &acme, name: &called, text: &text, rights: &all });
    let problems = checked.await.unwrap().problems;
    assert!(
        problems.iter().any(|one| one.to_string().contains("cannot pass the conversation on")),
        "{problems:?}"
    );
    world.save("acme", "helper", "tools: [write_file, read_file]\n").await;
    world.catalog.load().await.unwrap();
    let agents = world.catalog.agents(&acme).unwrap();
    let asked: Vec<&str> = agents[&called].approvals.ask.iter().map(ToolPattern::as_str).collect();
    assert_eq!(asked, ["write_file"]);
}

/// Broken ones and those with a name of a file are left out, and a deleted one is gone. Other tenants have only files.
#[tokio::test]
async fn k2_catalog_has_what_can_be_used() {
    let world = world().await;
    let acme = id("acme");
    assert!(world.catalog.agents(&acme).is_none());
    world.save("acme", "helper", "agents: [assistant]\ntools: [search_docs, shell]\n").await;
    world.save("acme", "broken", "agents: [nobody]\n").await;
    world.save("acme", "writer", "").await;
    world.save("small", "own", "").await;
    world.catalog.load().await.unwrap();
    let agents = world.catalog.agents(&acme).unwrap();
    assert_eq!(agents.keys().map(AgentName::as_str).collect::<Vec<_>>(), ["assistant", "helper", "writer"]);
    let tools: Vec<&str> = agents[&name("helper")].tools.allow.iter().map(ToolPattern::as_str).collect();
    assert_eq!(tools, ["search_docs"], "a tool that no agent of a file has is not given");
    assert!(
        world.catalog.is_created(&acme, &name("helper")) && !world.catalog.is_created(&acme, &name("writer"))
    );
    assert!(world.catalog.is_file(&acme, &name("writer")));
    assert_eq!(world.catalog.tenant(&acme).unwrap().left_out.iter().filter(|one| one.is_error()).count(), 2);
    assert!(Arc::ptr_eq(&agents, &world.catalog.agents(&acme).unwrap()), "the same until something changes");
    assert!(world.catalog.agents(&id("globex")).is_none());
    for called in ["helper", "broken", "writer"] {
        world.store.tenant(&acme).delete_agent(&name(called), AuditEntry::default()).await.unwrap();
    }
    world.catalog.refresh(&acme).await.unwrap();
    assert!(world.catalog.agents(&acme).is_none());
    assert!(world.catalog.agents(&id("small")).unwrap().contains_key(&name("own")));
}

/// Most tenants create no agents: what they ask for must not stay in memory.
#[tokio::test]
async fn k2_tenant_without_created_agents_has_no_entry() {
    let world = world().await;
    world.catalog.refresh(&id("globex")).await.unwrap();
    world.catalog.load().await.unwrap();
    assert!(world.catalog.tenant(&id("globex")).is_none());
}

fn files(sources: &[(&str, &str)]) -> Arc<Roster> {
    let sources: Vec<_> = sources
        .iter()
        .map(|(called, head)| SourceFile::new(format!("{called}.md"), file(called, head)))
        .collect();
    Arc::new(RosterDraft::parse(&sources, &KnownNames::default(), Vec::new()).finish().unwrap())
}

/// A catalog of the same store, with files that a test replaces.
fn catalog_of(world: &World, files: &Arc<Mutex<Arc<Roster>>>) -> Arc<AgentCatalog> {
    let files = Arc::clone(files);
    let newest = move |_: &TenantId| Some(Arc::clone(&files.lock().unwrap()));
    AgentCatalog::new(&world.project, Arc::clone(&world.store), Box::new(newest))
}

fn names(catalog: &AgentCatalog, tenant: &TenantId) -> Vec<String> {
    let agents = catalog.agents(tenant).unwrap();
    agents.keys().map(ToString::to_string).collect()
}

#[tokio::test]
async fn k2_changed_files_are_merged_by_the_next_load() {
    let (world, acme) = (world().await, id("acme"));
    let newest = Arc::new(Mutex::new(files(&[("assistant", "")])));
    let catalog = catalog_of(&world, &newest);
    world.save("acme", "helper", "").await;
    catalog.refresh(&acme).await.unwrap();
    assert_eq!(names(&catalog, &acme), ["assistant", "helper"]);
    *newest.lock().unwrap() = files(&[("assistant", ""), ("desk", "")]);
    assert_eq!(names(&catalog, &acme), ["assistant", "helper"], "a reader does not merge");
    catalog.load().await.unwrap();
    assert_eq!(names(&catalog, &acme), ["assistant", "desk", "helper"]);
    let merged = catalog.tenant(&acme).unwrap();
    catalog.load().await.unwrap();
    assert!(Arc::ptr_eq(&merged, &catalog.tenant(&acme).unwrap()), "nothing changed");
}

/// Files that are not valid under the rules of created agents: the agents in use stay, and the merge is not repeated.
#[tokio::test]
async fn k2_failed_merge_keeps_the_agents_and_is_not_repeated() {
    const UNPRICED: &str = "model: openai/a-model-of-our-own\nlimits: { max_cost_usd: 0.5 }\n";
    let (world, acme) = (world().await, id("acme"));
    let newest = Arc::new(Mutex::new(files(&[("assistant", "")])));
    let catalog = catalog_of(&world, &newest);
    world.save("acme", "helper", "").await;
    catalog.load().await.unwrap();
    let before = catalog.agents(&acme).unwrap();

    *newest.lock().unwrap() = files(&[("assistant", UNPRICED)]);
    world.save("acme", "second", "").await;
    catalog.load().await.unwrap();
    assert!(Arc::ptr_eq(&before, &catalog.agents(&acme).unwrap()), "the agents in use stay");
    let failed = catalog.tenant(&acme).unwrap();
    catalog.load().await.unwrap();
    catalog.refresh(&acme).await.unwrap();
    assert!(Arc::ptr_eq(&failed, &catalog.tenant(&acme).unwrap()), "it is not tried again");

    *newest.lock().unwrap() = files(&[("assistant", "")]);
    catalog.load().await.unwrap();
    assert_eq!(names(&catalog, &acme), ["assistant", "helper", "second"]);
}

/// The permission is asked for again when the agent is saved, whatever led there.
#[tokio::test]
async fn k2_saving_an_agent_needs_the_permission() {
    let world = world().await;
    let run_id = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    let context = |rights: Rights| CallContext {
        tenant: id("acme"),
        user: UserId::parse("ada").unwrap(),
        rights,
        thread_id: ThreadId::random(),
        run_id,
        session_id: SessionId::root(run_id),
        agent: name("agent-creator"),
        work_dir: std::path::PathBuf::new(),
        has_workspace: false,
        storage_left: None,
        subfolder: None,
        trace: None,
    };
    let drafts =
        AgentDrafts::new(Arc::clone(&world.store), Some(Arc::clone(&world.catalog) as Arc<dyn AgentLibrary>));
    let error = drafts.save(&context(rights(&["skill:create"])), &name("helper")).await.unwrap_err();
    assert_eq!(error.to_string(), "not permitted: saving an agent needs the permission `agent:write`");
    let error = drafts.save(&context(rights(&["agent:write"])), &name("helper")).await.unwrap_err();
    assert!(error.to_string().contains("there is no draft `helper`"), "{error}");
}
