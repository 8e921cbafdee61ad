//! Pages that must keep up with the program.

use std::{collections::BTreeSet, fs, path::Path};

use leasehold::model::Reason;

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

#[test]
fn every_reason_has_a_page_and_every_page_a_reason() {
    let pages: BTreeSet<String> = fs::read_dir(docs().join("errors"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let reasons: BTreeSet<String> = Reason::ALL.iter().map(|reason| format!("{}.md", reason.as_str())).collect();
    assert_eq!(pages, reasons);
}

#[test]
fn a_page_of_a_reason_says_what_it_means_for_everybody() {
    let protocol = fs::read_to_string(docs().join("protocol.md")).expect("the page");
    for reason in Reason::ALL.map(Reason::as_str) {
        let page = fs::read_to_string(docs().join("errors").join(format!("{reason}.md"))).expect("the page");
        let outcome = if matches!(reason, "OUTCOME_UNKNOWN" | "INTERNAL") { "`unknown`" } else { "`not-applied`" };
        for part in [&format!("# {reason}\n"), outcome, "* **Producer.** ", "* **Worker.** ", "* **Operator.** "] {
            assert!(page.contains(part), "docs/errors/{reason}.md lacks {part:?}");
        }
        assert!(protocol.contains(&format!("(errors/{reason}.md)")), "docs/protocol.md does not name {reason}'s page");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut followed = 0;
    for folder in [docs(), docs().join("errors")] {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("UTF-8");
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if !link.contains("://") && !link.starts_with('#') {
                    let file = link.split('#').next().unwrap_or(link);
                    assert!(folder.join(file).exists(), "{} links to {link}", path.display());
                    followed += 1;
                }
            }
        }
    }
    assert!(followed > 20, "only {followed} links are followed");
}

#[test]
fn every_alert_says_on_the_page_for_kubernetes_what_to_do_and_leads_to_a_section_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = fs::read_to_string(root.join("helm/leasehold/alerts/leasehold.yaml")).expect("the rules");
    let page = fs::read_to_string(docs().join("kubernetes.md")).expect("the page");
    let alerts: Vec<&str> = values(&rules, "- alert: ").collect();
    assert!(alerts.len() > 5, "only {alerts:?} are found");
    for alert in &alerts {
        assert!(page.contains(&format!("\n| `{alert}` | ")), "docs/kubernetes.md does not say what to do at {alert}");
    }
    let runbooks: Vec<&str> = values(&rules, "runbook_url: ").collect();
    assert_eq!(runbooks.len(), alerts.len());
    for runbook in runbooks {
        let (file, anchor) = runbook.split_once('#').expect("a section");
        let text = fs::read_to_string(root.join(file)).expect("the page");
        let is_it = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-") == anchor;
        assert!(text.lines().any(|line| line.starts_with('#') && is_it(line)), "{runbook} leads nowhere");
    }
}

/// What follows `key` on each line that begins with it.
fn values<'a>(yaml: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    yaml.lines().filter_map(move |line| line.trim_start().strip_prefix(key))
}
