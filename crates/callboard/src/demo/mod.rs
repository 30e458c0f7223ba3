//! stub
mod link;
use crate::args::*;
use crate::failure::Failure;
use crate::output::Output;
pub(crate) async fn run(_c: DemoArgs, _o: &Output) -> Result<(), Failure> {
    Ok(())
}
