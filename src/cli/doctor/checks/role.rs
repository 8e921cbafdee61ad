//! What the role may do: too much, too little.

use super::{super::finding::Finding, Expectations, unseen};
use crate::store::engine::examining::{RoleFacts, Seen};

const CHECK: &str = "privileges";

pub(super) fn judge(role: &Seen<Option<RoleFacts>>, expected: &Expectations) -> Vec<Finding> {
    let role = match role {
        Ok(None) => return Vec::new(),
        Ok(Some(role)) => role,
        Err(why) => return vec![unseen(CHECK, why)],
    };
    let mut findings = Vec::new();
    if !role.lacks.is_empty() {
        findings.push(Finding::fail(
            CHECK,
            format!("role {} lacks rights that serving needs", role.name),
            format!("run docs/roles.sql again, or as the tables' owner: {}", role.lacks.join("; ")),
        ));
    }
    if !role.powers.is_empty() {
        findings.push(Finding::warn(
            CHECK,
            format!("role {} {}: more than a broker needs", role.name, role.powers.join(", ")),
            "serve as a role that docs/roles.sql makes",
        ));
    } else if role.shapes_tables && !expected.migrates {
        findings.push(Finding::warn(
            CHECK,
            format!("role {} may change the shape of our tables, and serving needs no such right", role.name),
            "serve as a role that docs/roles.sql makes, and keep this one for 'leasehold migrate up'",
        ));
    }
    if findings.is_empty() {
        let more = if role.shapes_tables { ", and may change tables, as migrate = true needs" } else { "" };
        findings.push(Finding::ok(CHECK, format!("role {} may do what serving needs{more}", role.name)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{super::healthy, *};

    fn troubles(change: impl Fn(&mut RoleFacts), expected: &Expectations) -> Vec<Finding> {
        let mut facts = healthy::facts();
        if let Ok(Some(role)) = &mut facts.role {
            change(role);
        }
        judge(&facts.role, expected).into_iter().filter(|finding| finding.remedy.is_some()).collect()
    }

    #[test]
    fn a_superuser_and_an_owner_of_the_tables_may_too_much() {
        let found = troubles(|role| role.powers = vec!["is superuser"], &healthy::expected());
        assert!(found.len() == 1 && found[0].says.contains("role broker is superuser"), "{found:?}");
        let found = troubles(|role| role.shapes_tables = true, &healthy::expected());
        assert!(found.len() == 1 && found[0].says.contains("shape"), "{found:?}");
    }

    #[test]
    fn a_broker_that_migrates_may_change_tables() {
        let migrates = Expectations { migrates: true, ..healthy::expected() };
        assert!(troubles(|role| role.shapes_tables = true, &migrates).is_empty());
    }

    #[test]
    fn what_is_lacking_is_given_as_statements() {
        let found = troubles(|role| role.lacks = vec!["grant x on y to z".into()], &healthy::expected());
        assert!(found[0].remedy.as_ref().is_some_and(|remedy| remedy.contains("grant x on y to z")), "{found:?}");
    }
}
