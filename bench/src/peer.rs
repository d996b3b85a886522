//! The peer: a client built on rmcp, as its documentation shows one.

use std::{path::Path, process::Stdio};

use rmcp::{
    ClientServiceExt as _, RoleClient,
    model::ProtocolVersion,
    service::{ClientLifecycleMode, RunningService},
    transport::TokioChildProcess,
};
use tokio::process::Command;

use crate::measure::Result;

/// Starts a stdio server and agrees on the modern era with it, the same as the other side does.
///
/// # Errors
/// It does not start or agree.
pub(crate) async fn connect(
    program: &Path,
    args: &[String],
) -> Result<RunningService<RoleClient, ()>> {
    let mut command = Command::new(program);
    command.args(args);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn()?;
    let mode =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    Ok(().serve_with_lifecycle(transport, mode).await?)
}
