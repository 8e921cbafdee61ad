//! What another system answered to a reservation, and what came of it here.

use super::short_shown;
use crate::{
    model::{Comparison, Failure, Invalid},
    store::{Expected, Mirrored, NewReservation},
    v1,
};

/// What the other system answered, where the call mirrors one.
pub(in crate::grpc) fn shadow_expected(shadow: Option<&v1::Shadow>) -> Result<Option<Expected>, Invalid> {
    let Some(shadow) = shadow else { return Ok(None) };
    match v1::ShadowOutcome::try_from(shadow.expected) {
        Ok(v1::ShadowOutcome::Held) => Ok(Some(Expected::Held)),
        Ok(v1::ShadowOutcome::SoldOut) => Ok(Some(Expected::SoldOut)),
        Ok(v1::ShadowOutcome::Unspecified) | Err(_) => {
            Err(Invalid::new("shadow.expected", "must be HELD or SOLD_OUT, what the other system answered"))
        }
    }
}

/// Both parts of a call that mirrors, or the faults of both.
pub(in crate::grpc) fn with_shadow(
    new: Result<NewReservation, Failure>,
    expected: Result<Option<Expected>, Invalid>,
) -> Result<(NewReservation, Option<Expected>), Failure> {
    match (new, expected) {
        (Ok(new), Ok(expected)) => Ok((new, expected)),
        (Ok(_), Err(fault)) => Err(fault.into()),
        (Err(mut failure), Err(fault)) => {
            failure.invalid.push(fault);
            Err(Failure::invalid(failure.invalid))
        }
        (Err(failure), Ok(_)) => Err(failure),
    }
}

/// As the wire has it.
pub(in crate::grpc) fn shadow_shown(mirrored: &Mirrored) -> v1::ShadowReport {
    let refused = mirrored.refused.as_ref();
    v1::ShadowReport {
        differs: mirrored.comparison == Comparison::Differs,
        reason: refused.map_or_else(String::new, |failure| failure.reason.as_str().to_owned()),
        lines: refused
            .and_then(|failure| failure.sold_out.as_ref())
            .map_or_else(Vec::new, |sold_out| sold_out.shortages.iter().map(short_shown).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_there_are_can_be_mirrored() {
        let shadow = |expected| shadow_expected(Some(&v1::Shadow { expected }));
        assert_eq!(shadow_expected(None), Ok(None));
        assert_eq!(shadow(v1::ShadowOutcome::Held.into()), Ok(Some(Expected::Held)));
        assert_eq!(shadow(v1::ShadowOutcome::SoldOut.into()), Ok(Some(Expected::SoldOut)));
        for wrong in [0, 3, -1] {
            assert_eq!(shadow(wrong).map_err(|fault| fault.field), Err("shadow.expected".into()));
        }
    }

    #[test]
    fn a_wrong_shadow_is_told_together_with_the_other_faults() {
        let wrong = || Err(Invalid::new("shadow.expected", "must be one"));
        let new = Err(Failure::invalid(vec![Invalid::new("reference", "must be set")]));
        let fields = |failure: Failure| failure.invalid.into_iter().map(|fault| fault.field).collect::<Vec<_>>();
        let failure = with_shadow(new, wrong()).expect_err("two faults");
        assert_eq!(fields(failure), ["reference", "shadow.expected"]);
    }
}
