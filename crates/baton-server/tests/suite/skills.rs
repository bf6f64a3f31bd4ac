//! Skills over HTTP: the tenant's own and shared ones, and nobody else's.

use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::skill::{SkillFuture, SkillHeads};
use baton_core::{SkillFile, SkillHead, SkillOrigin, SkillSource, TenantId};
use baton_models::scripted::Scripted;
use serde_json::{Value, json};

use crate::site::{Plan, Site};

/// Skills in memory: whose each is, `None` for everybody.
#[derive(Debug, Default)]
pub struct Made(Vec<(Option<TenantId>, Arc<SkillHead>)>);

impl Made {
    pub fn by(tenant: &str, name: &str, description: &str) -> Self {
        Self::default().and(Some(tenant), name, description)
    }

    fn and(mut self, tenant: Option<&str>, name: &str, description: &str) -> Self {
        let origin = if tenant.is_some() { SkillOrigin::Created } else { SkillOrigin::Shared };
        let name = SkillName::parse(name).unwrap();
        let head = Arc::new(SkillHead { name, description: description.to_owned(), origin });
        self.0.push((tenant.map(|tenant| TenantId::parse(tenant).unwrap()), head));
        self.0.sort_by(|a, b| a.1.name.cmp(&b.1.name));
        self
    }

    fn of(&self, tenant: &TenantId) -> SkillHeads {
        let seen = self.0.iter().filter(|(whose, _)| whose.as_ref().is_none_or(|whose| whose == tenant));
        seen.map(|(_, head)| Arc::clone(head)).collect()
    }
}

impl SkillSource for Made {
    fn list<'a>(&'a self, tenant: &'a TenantId) -> SkillFuture<'a, SkillHeads> {
        Box::pin(async move { Ok(self.of(tenant)) })
    }

    fn read<'a>(&'a self, tenant: &'a TenantId, name: &'a SkillName) -> SkillFuture<'a, Option<SkillFile>> {
        Box::pin(async move {
            let head = self.of(tenant).into_iter().find(|head| head.name == *name);
            Ok(head.map(|head| SkillFile {
                text: format!("---\n---\n{}", head.description),
                body_at: 8,
                head,
            }))
        })
    }
}

async fn site() -> Site {
    let made = (0..120).fold(Made::default(), |made, n| made.and(None, &format!("s{n:03}"), "Shared."));
    let made = made.and(Some("acme"), "slack-alert", "Alerts.").and(Some("globex"), "globex-only", "Theirs.");
    Plan::new(&Scripted::default()).required().skills(Arc::new(made)).start().await
}

async fn get(site: &Site, key: &str, path: &str) -> (u16, Value) {
    let answer = site.http.get(site.url(path)).bearer_auth(key).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_tenant_lists_what_its_agents_can_use() {
    let site = site().await;
    let key = site.key("acme", "ada", &["user"]).await;
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = get(&site, &key, &format!("/api/v1/skills?limit=50{cursor}")).await;
        assert_eq!(status, 200, "{page}");
        names.extend(
            page["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names.len(), 121, "each once, and nobody else's");
    assert!(names.is_sorted() && names.contains(&"slack-alert".to_owned()));
    let (status, problem) = get(&site, &key, "/api/v1/skills?cursor=!").await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
    site.end().await;
}

#[tokio::test]
async fn a_skill_is_shown_with_its_file_and_a_foreign_one_is_none() {
    let site = site().await;
    let key = site.key("acme", "ada", &["user"]).await;
    let (status, shown) = get(&site, &key, "/api/v1/skills/slack-alert").await;
    let expected = json!({ "name": "slack-alert", "description": "Alerts.", "origin": "created", "text": "---\n---\nAlerts." });
    assert_eq!((status, shown), (200, expected));
    let mut refusals = Vec::new();
    for name in ["globex-only", "nobody-has-it", "Not%20A%20Name", "..%2Fx", "%ff"] {
        let (status, mut problem) = get(&site, &key, &format!("/api/v1/skills/{name}")).await;
        problem.as_object_mut().unwrap().remove("trace_id");
        assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{name}");
        refusals.push(problem);
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "nobody can tell a foreign skill from none");
    site.end().await;
}

#[tokio::test]
async fn a_server_without_skills_has_none() {
    let site = Plan::new(&Scripted::default()).start().await;
    let list: Value = site.get("/api/v1/skills").await.json().await.unwrap();
    assert_eq!(list, json!({ "data": [], "next_cursor": null }));
    assert_eq!(site.get("/api/v1/skills/x").await.status(), 404);
    site.end().await;
}
