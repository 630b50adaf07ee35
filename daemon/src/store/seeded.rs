//! What the faults of a commit need that a test asks for (`minder_proto::trial`). Nothing of it is in a release.

use minder_proto::error::Fault;
use minder_proto::id::Party;

use super::op::Op;
use super::owner::Write;
use super::txn::{Done, Txn};

/// Stands for a mutation whose caller was answered.
struct Answered;

impl Write for Answered {
    fn run(&mut self, _: &mut Txn<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn answer(self: Box<Self>, _: Result<(), Fault>) {}
}

/// Answers before anything is done.
pub fn answered(job: Box<dyn Write>) -> Box<dyn Write> {
    job.answer(Ok(()));
    Box::new(Answered)
}

/// Leaves in each commit what concerns the session of its first line, and gives the rest.
pub fn halves<'a>(group: &mut [Vec<Op>], done: impl Iterator<Item = &'a Done>) -> Vec<Vec<Op>> {
    let mut rest = Vec::new();
    for (ops, done) in group.iter_mut().zip(done) {
        let first = done.appended.first().and_then(|line| match line.party {
            Party::Session(id) => Some(id),
            _ => None,
        });
        let (kept, later): (Vec<Op>, Vec<Op>) =
            std::mem::take(ops).into_iter().partition(|op| op.session().is_none_or(|s| Some(s) == first));
        *ops = kept;
        if !later.is_empty() {
            rest.push(later);
        }
    }
    rest
}
