//! One server, 10,000 tools in 100 pages: how long from the first page's request to the typed list.

use std::{path::Path, time::Instant};

use toolcrib_testkit::script;

use crate::{
    measure::{Result, Sample, compare, say, table, verdict},
    ours, peer,
};

/// The sides in turn, and the ratio.
///
/// # Errors
/// A side failed.
pub(crate) fn report(rounds: usize) -> Result<()> {
    script::binary();
    say("list: 10,000 tools in 100 pages from one stdio server")?;
    let sides = compare("list", ["toolcrib", "rmcp"], rounds)?;
    table(&sides)?;
    verdict("list time / rmcp", sides[0].median.ms / sides[1].median.ms, 0.8, "")
}

/// One side, here and now.
///
/// # Errors
/// It failed.
pub(crate) async fn one(side: &str) -> Result<Sample> {
    let program = script::binary();
    let args = ["--tools", "10000", "--page", "100"].map(str::to_owned).to_vec();
    match side {
        "toolcrib" => toolcrib(&program, &args).await,
        "rmcp" => rmcp(&program, &args).await,
        _ => Err(format!("list has no side {side}").into()),
    }
}

async fn toolcrib(program: &Path, args: &[String]) -> Result<Sample> {
    let begin = Instant::now();
    let session = ours::open(program, args).await?;
    let from = Instant::now();
    let surface = ours::surface(&session).await?;
    let sample = Sample::now(begin, from, surface.tools.items.len());
    session.close().await;
    Ok(sample)
}

async fn rmcp(program: &Path, args: &[String]) -> Result<Sample> {
    let begin = Instant::now();
    let client = peer::connect(program, args).await?;
    let from = Instant::now();
    let tools = client.list_all_tools().await?;
    let sample = Sample::now(begin, from, tools.len());
    client.cancel().await?;
    Ok(sample)
}
