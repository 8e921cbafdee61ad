//! `leasehold job explain`.

use clap::Args;
use serde::Serialize;

use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        output::{Output, escape, job, queue, time},
    },
    v1::{ExplainJobRequest, ExplainJobResponse, Wait, WaitReason},
};

/// `leasehold job explain`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Explain {
    /// The job
    #[arg(value_name = "JOB_ID")]
    job: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct ExplainJson<'a> {
    job_id: &'a str,
    queue: &'a str,
    state: &'static str,
    waits: Vec<WaitJson<'a>>,
}

#[derive(Serialize)]
struct WaitJson<'a> {
    reason: String,
    explanation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    blocking_job_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    consumer: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead_at_least: Option<bool>,
}

impl Explain {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = ExplainJobRequest { job_id: self.job };
        let answer = broker.admin().explain_job(broker.call(request)).await?.into_inner();
        if self.output.json {
            let job = answer.job.as_ref();
            Output::object(&ExplainJson {
                job_id: job.map_or("", |job| &job.job_id),
                queue: job.map_or("", |job| &job.queue),
                state: job.map_or("unknown", |job| job::state(job.state())),
                waits: answer.waits.iter().map(wait_json).collect(),
            })?;
        } else {
            Output::line(&lines(&answer))?;
        }
        Ok(Exit::Ok)
    }
}

fn wait_json(wait: &Wait) -> WaitJson<'_> {
    WaitJson {
        reason: word(wait.reason()),
        explanation: &wait.explanation,
        until: time::maybe(wait.until),
        blocking_job_id: &wait.blocking_job_id,
        consumer: &wait.consumer,
        ahead: wait.ahead.map(|count| count.value),
        ahead_at_least: wait.ahead.map(|count| count.at_least),
    }
}

/// A reason as in the contract, in lower case and without what all of them begin with.
fn word(reason: WaitReason) -> String {
    reason.as_str_name().trim_start_matches("WAIT_REASON_").to_ascii_lowercase()
}

/// For people: the job, then a line for each thing that would have to change, in that order.
fn lines(answer: &ExplainJobResponse) -> String {
    let mut lines = Vec::new();
    if let Some(job) = &answer.job {
        lines.push(format!(
            "job {} of queue {} is {}, attempt {} of {}",
            escape::text(&job.job_id),
            escape::text(&job.queue),
            job::state(job.state()),
            job.attempt,
            job.max_attempts
        ));
    }
    for (n, wait) in answer.waits.iter().enumerate() {
        lines.push(format!("{}. {}: {}", n + 1, word(wait.reason()), escape::text(&wait.explanation)));
        let mut add = |label: &str, text: String| lines.push(format!("   {label}: {}", escape::text(&text)));
        if let Some(until) = wait.until {
            add("until", format!("{} ({})", time::instant(until), time::from_now(until)));
        }
        if !wait.blocking_job_id.is_empty() {
            add("behind job", wait.blocking_job_id.clone());
        }
        if !wait.consumer.is_empty() {
            add("consumer", wait.consumer.clone());
        }
        if wait.ahead.is_some() {
            add("jobs ahead", queue::count(wait.ahead.as_ref()));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{Count, Job, JobState};

    #[test]
    fn an_explanation_lists_what_would_have_to_change_in_order() {
        let paused = Wait {
            reason: WaitReason::QueuePaused.into(),
            explanation: "the queue is paused: resume it".into(),
            ..Wait::default()
        };
        let ahead = Wait {
            reason: WaitReason::BehindOthers.into(),
            explanation: "others go first".into(),
            ahead: Some(Count { value: 12, at_least: false }),
            ..Wait::default()
        };
        let job = Job { job_id: "7".into(), queue: "orders".into(), max_attempts: 20, ..Job::default() };
        let job = Job { state: JobState::Ready.into(), ..job };
        let answer = ExplainJobResponse { job: Some(job), waits: vec![paused, ahead] };
        assert_eq!(
            lines(&answer),
            "job 7 of queue orders is ready, attempt 0 of 20\n\
             1. queue_paused: the queue is paused: resume it\n\
             2. behind_others: others go first\n   jobs ahead: 12"
        );
    }
}
