//! The lease tokens of one request.

use super::faults::Faults;
use crate::{
    model::{Failure, Invalid, LeaseToken, Limits},
    store::engine::LeaseRef,
};

/// Tokens in the order of the request. Malformed ones keep their place and never reach the store.
#[derive(Debug)]
pub(in crate::grpc) struct Tokens(Vec<Option<LeaseToken>>);

impl Tokens {
    /// The tokens in `field`.
    pub(in crate::grpc) fn parse<'a>(
        field: &str,
        sent: impl ExactSizeIterator<Item = &'a str>,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        if !(1..=limits.batch).contains(&sent.len()) {
            faults.note(Invalid::new(field, format!("must hold 1 to {} entries", limits.batch)));
            return faults.or(Self(Vec::new()));
        }
        Ok(Self(sent.map(LeaseToken::parse).collect()))
    }

    /// Place of each well-formed token in the request.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, LeaseRef)> {
        let well_formed = |(place, token): (usize, &Option<LeaseToken>)| token.map(|token| (place, lease(token)));
        self.0.iter().enumerate().filter_map(well_formed)
    }

    /// The leases of the well-formed ones: what the store is asked about.
    pub(in crate::grpc) fn leases(&self) -> Vec<LeaseRef> {
        self.0.iter().copied().flatten().map(lease).collect()
    }

    /// Each well-formed token with the store's answer about it.
    pub(in crate::grpc) fn with<'a, A>(&'a self, answers: &'a [A]) -> impl Iterator<Item = (LeaseToken, &'a A)> {
        self.0.iter().copied().flatten().zip(answers)
    }

    /// One result per token, in order: the store's answer where there is one, else `malformed`.
    pub(super) fn results<A, R: Clone>(
        &self,
        answers: &[A],
        result: impl Fn(&A) -> R,
        malformed: &R,
    ) -> Result<Vec<R>, Failure> {
        if self.0.iter().flatten().count() != answers.len() {
            return Err(Failure::internal("the store answered about other leases than it was asked about"));
        }
        let mut answers = answers.iter();
        let answer = |token: &Option<LeaseToken>| match token {
            Some(_) => answers.next().map_or_else(|| malformed.clone(), &result), // counted above: there is one for each
            None => malformed.clone(),
        };
        Ok(self.0.iter().map(answer).collect())
    }
}

fn lease(token: LeaseToken) -> LeaseRef {
    LeaseRef { job: token.job, lease: token.lease }
}
