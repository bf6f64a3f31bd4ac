//! Runs the cases, one after the other: a slow model would only get slower with several at once.

use std::time::Instant;

use anyhow::Context as _;

use crate::cases::{self, Case};
use crate::check::check;
use crate::conversation::{Played, play};
use crate::endpoint;
use crate::options::{Options, Variant, file_safe};
use crate::project::{self, ModelChoice};
use crate::report::{CaseResult, Report};
use crate::server::Server;

/// Runs all cases with all variants and stores the results. The stored results to compare with come first.
///
/// A case that fails or times out is a result. An endpoint that does not list its models, an invalid case file and a server that
/// does not start are errors.
pub async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let cases = cases::load(&options.cases_dir(), &options.only)?;
    let name = match &options.model {
        Some(name) => name.clone(),
        None => endpoint::first_model(&options.model_url).await?,
    };
    let model = ModelChoice { base_url: options.model_url.clone(), name, temperature: options.temperature };
    let mut reports = Vec::new();
    if let Some(path) = &options.compare {
        reports.push(Report::load(path)?);
    }
    for variant in options.variants() {
        reports.push(run_variant(options, &variant, &cases, &model).await?);
    }
    Ok(reports)
}

async fn run_variant(
    options: &Options,
    variant: &Variant,
    cases: &[Case],
    model: &ModelChoice,
) -> anyhow::Result<Report> {
    anyhow::ensure!(variant.dir.is_dir(), "{} is no folder", variant.dir.display());
    let mut report = Report::new(&model.name, &variant.label, model.temperature);
    let file = options.results.join(format!("{}-{}.json", file_safe(&model.name), variant.label));
    for repetition in 1..=options.repeat {
        for case in cases {
            let result = run_case(options, variant, case, model, repetition).await?;
            eprintln!("{}", result.progress_line(&variant.label));
            report.add(result);
            // A long run that is stopped keeps what it has.
            report.store(&file)?;
        }
    }
    eprintln!("results: {}", file.display());
    Ok(report)
}

/// Runs a case with a project and a server of its own, so that cases cannot affect each other.
async fn run_case(
    options: &Options,
    variant: &Variant,
    case: &Case,
    model: &ModelChoice,
    repetition: u32,
) -> anyhow::Result<CaseResult> {
    let begun = Instant::now();
    let project = project::create(&options.root, variant, case, model)?;
    let server = Server::start(&options.baton()?, project.path()).await;
    let server = server.with_context(|| case.id())?;
    let Played { observation, problem } = play(&server.url, case, options.time_limit()).await;
    server.stop().await;
    let checks = check(&case.expect, &observation);
    Ok(CaseResult::new(case, repetition, begun.elapsed(), observation, checks, problem))
}
