//! stub
use crate::Fault;
pub fn run(_a: lexopt::Parser) -> Result<(), Fault> { Ok(()) }
pub fn peak_memory(_a: lexopt::Parser) -> Result<(), Fault> { Ok(()) }
