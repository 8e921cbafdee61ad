//! Settings that something depends on: one line for each purpose, and one for each setting at fault.

use super::{super::finding::Finding, Expectations, unseen};
use crate::store::engine::examining::{Purpose, Seen, SettingFact};

const PURPOSES: [Purpose; 6] =
    [Purpose::Durability, Purpose::Failover, Purpose::Isolation, Purpose::Session, Purpose::Maintenance, Purpose::Text];

pub(super) fn judge(settings: &Seen<Vec<SettingFact>>, expected: &Expectations) -> Vec<Finding> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(why) => return vec![unseen("durability", why)],
    };
    let mut findings = Vec::new();
    for purpose in PURPOSES {
        let of_it = settings.iter().filter(|setting| setting.purpose == purpose);
        let (good, bad): (Vec<&SettingFact>, Vec<&SettingFact>) = of_it.partition(|setting| setting.fits);
        if bad.is_empty() && !good.is_empty() {
            let said: Vec<String> = good.iter().map(|setting| said(setting)).collect();
            findings.push(Finding::ok(check(purpose), said.join(", ")));
        }
        findings.extend(bad.chunk_by(|a, b| a.change == b.change).map(|settings| at_fault(settings, expected)));
    }
    findings
}

fn said(setting: &SettingFact) -> String {
    format!("{} = {}", setting.name, setting.value)
}

fn check(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Durability => "durability",
        Purpose::Failover => "failover",
        Purpose::Isolation => "isolation",
        Purpose::Session => "session",
        Purpose::Maintenance => "autovacuum",
        Purpose::Text => "text",
    }
}

/// Settings of one purpose that one change mends.
fn at_fault(settings: &[&SettingFact], expected: &Expectations) -> Finding {
    let (purpose, change) = (settings[0].purpose, settings[0].change);
    let so_what = match purpose {
        Purpose::Durability => "a crash or a power cut can lose jobs whose Enqueue was answered",
        Purpose::Failover => "a failover can lose the last jobs and bring back acked ones",
        Purpose::Isolation => "acts would fail, or see an old state",
        Purpose::Session => "statements would read whole tables, so the broker refuses to work",
        Purpose::Maintenance => "finished jobs' rows stay, and everything slows down",
        Purpose::Text => "a job with a character that it lacks is refused",
    };
    let wrong: Vec<String> =
        settings.iter().map(|setting| format!("{} (should be {})", said(setting), setting.wanted)).collect();
    let says = format!("{}: {so_what}", wrong.join(", "));
    match purpose {
        Purpose::Durability if expected.allow_lossy => {
            Finding::warn("durability", format!("{says} (allow_lossy accepts that)"), change)
        }
        Purpose::Failover | Purpose::Text => Finding::warn(check(purpose), says, change),
        _ => Finding::fail(check(purpose), says, change),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::healthy, *};

    fn troubles(purpose: Purpose, expected: &Expectations) -> Vec<String> {
        let mut facts = healthy::facts();
        let bad = SettingFact { fits: false, value: "off".into(), ..healthy::setting("fsync", purpose) };
        facts.settings = Ok(vec![bad]);
        healthy::troubles(&facts, expected)
    }

    #[test]
    fn each_purpose_has_its_weight() {
        for (purpose, line) in [
            (Purpose::Durability, "fail durability"),
            (Purpose::Failover, "warn failover"),
            (Purpose::Isolation, "fail isolation"),
            (Purpose::Session, "fail session"),
            (Purpose::Maintenance, "fail autovacuum"),
            (Purpose::Text, "warn text"),
        ] {
            assert_eq!(troubles(purpose, &healthy::expected()), [line]);
        }
    }

    #[test]
    fn lossy_settings_that_are_allowed_are_a_warning() {
        let lossy = Expectations { allow_lossy: true, ..healthy::expected() };
        assert_eq!(troubles(Purpose::Durability, &lossy), ["warn durability"]);
        assert_eq!(troubles(Purpose::Maintenance, &lossy), ["fail autovacuum"]);
    }

    #[test]
    fn settings_that_one_change_mends_share_a_line() {
        let bad = |name, change| SettingFact { fits: false, change, ..healthy::setting(name, Purpose::Session) };
        let facts = vec![bad("a", "x"), bad("b", "x"), bad("c", "y")];
        let lines = judge(&Ok(facts), &healthy::expected());
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].says.starts_with("a = on (should be on), b = on (should be on): "), "{}", lines[0].says);
    }

    #[test]
    fn a_setting_at_fault_says_what_it_is_and_what_to_change() {
        let bad = SettingFact { fits: false, value: "off".into(), ..healthy::setting("fsync", Purpose::Durability) };
        let lines = judge(&Ok(vec![bad]), &healthy::expected());
        assert!(lines[0].says.starts_with("fsync = off (should be on): "), "{}", lines[0].says);
        assert_eq!(lines[0].remedy.as_deref(), Some("switch it on"));
    }
}
