//! What KEDA asks about a queue, and what it hears.

use super::faults::Faults;
use crate::{
    keda,
    model::{Failure, Invalid, QueueLoad, QueueName, Scaling, ScalingMetric},
};

const ALLOWED: &str = "queue, targetReady, targetAgeSeconds and activationReady";
/// KEDA hands over all keys of a trigger, its own among them.
const KEDAS_OWN: [&str; 6] = ["scalerAddress", "enableTLS", "unsafeSsl", "tlsCertFile", "caCert", "timeout"];
/// A key that came by way of KEDA's environment.
const FROM_ENVIRONMENT: &str = "FromEnv";
/// Largest target.
const TARGET_MOST: f64 = 1e9;
/// Bytes of an unknown key that its sender is shown.
const KEY_SHOWN: usize = 64;

/// What its metadata says.
#[derive(Default)]
struct Metadata<'a> {
    queue: Option<&'a str>,
    target_ready: Option<&'a str>,
    target_age: Option<&'a str>,
    activation_ready: Option<&'a str>,
}

/// The trigger that a request is about.
pub(in crate::grpc) fn scaled_object(request: &keda::GetMetricsRequest) -> Result<&keda::ScaledObjectRef, Failure> {
    let missing = || Failure::invalid(vec![Invalid::new("scaledObjectRef", "must be given")]);
    request.scaled_object_ref.as_ref().ok_or_else(missing)
}

/// What the trigger wants to go by, checked.
pub(in crate::grpc) fn scaling(sent: &keda::ScaledObjectRef) -> Result<Scaling, Failure> {
    let mut faults = Faults::default();
    let metadata = metadata(sent, &mut faults);
    let queue = faults.keep(QueueName::parse(&field("queue"), metadata.queue.unwrap_or_default()));
    let named = [
        (ScalingMetric::Ready, "targetReady", metadata.target_ready),
        (ScalingMetric::Oldest, "targetAgeSeconds", metadata.target_age),
    ];
    if named.iter().all(|(.., value)| value.is_none()) {
        faults.note(Invalid::new("scalerMetadata", "must have targetReady (jobs for each worker) or targetAgeSeconds"));
    }
    let mut targets = Vec::new();
    for (metric, key, value) in named {
        if let Some(target) = value.and_then(|value| faults.keep(target(key, value))) {
            targets.push((metric, target));
        }
    }
    let activation_ready = match metadata.activation_ready {
        Some(value) => faults.keep(
            value
                .trim()
                .parse::<u64>()
                .map_err(|_| Invalid::new(field("activationReady"), "must be a whole number of jobs, 0 or more")),
        ),
        None => Some(0),
    };
    let faults = faults.or(()).map(|()| queue.zip(activation_ready));
    let (queue, activation_ready) = faults?.expect("what is missing is a fault");
    Ok(Scaling { queue, targets, activation_ready })
}

fn metadata<'a>(sent: &'a keda::ScaledObjectRef, faults: &mut Faults) -> Metadata<'a> {
    let mut metadata = Metadata::default();
    let mut entries: Vec<(&String, &String)> = sent.scaler_metadata.iter().collect();
    entries.sort(); // so that the same request hears the same answer
    for (key, value) in entries {
        let place = match key.strip_suffix(FROM_ENVIRONMENT).unwrap_or(key) {
            "queue" => &mut metadata.queue,
            "targetReady" => &mut metadata.target_ready,
            "targetAgeSeconds" => &mut metadata.target_age,
            "activationReady" => &mut metadata.activation_ready,
            own if KEDAS_OWN.contains(&own) => continue,
            _ => {
                let shown = key.get(..key.floor_char_boundary(KEY_SHOWN)).unwrap_or_default();
                faults.note(Invalid::new(field(shown), format!("is not known; there are {ALLOWED}")));
                continue;
            }
        };
        if place.replace(value).is_some() {
            faults.note(Invalid::new(field(key), "must not be given twice"));
        }
    }
    metadata
}

fn target(key: &str, value: &str) -> Result<f64, Invalid> {
    let number = value.trim().parse::<f64>().ok();
    number
        .filter(|number| *number > 0.0 && *number <= TARGET_MOST)
        .ok_or_else(|| Invalid::new(field(key), "must be a number above 0 and at most 1000000000"))
}

fn field(key: &str) -> String {
    format!("scalerMetadata.{key}")
}

/// The targets.
pub(in crate::grpc) fn metric_specs(scaling: &Scaling) -> keda::GetMetricSpecResponse {
    let spec = |&(metric, target): &(ScalingMetric, f64)| keda::MetricSpec {
        metric_name: metric.name().to_owned(),
        target_size: rounded_up(target),
        target_size_float: target,
    };
    keda::GetMetricSpecResponse { metric_specs: scaling.targets.iter().map(spec).collect() }
}

/// The metric of that name, or all where it is empty.
pub(in crate::grpc) fn metric_values(
    scaling: &Scaling,
    name: &str,
) -> Result<impl FnOnce(&QueueLoad) -> keda::GetMetricsResponse + use<>, Failure> {
    let asked: Vec<ScalingMetric> = scaling
        .targets
        .iter()
        .map(|(metric, _)| *metric)
        .filter(|metric| name.is_empty() || metric.name() == name)
        .collect();
    if asked.is_empty() {
        let rule = "must be empty or one of the names that GetMetricSpec answers for this metadata";
        return Err(Failure::invalid(vec![Invalid::new("metricName", rule)]));
    }
    Ok(move |load: &QueueLoad| {
        let value = |metric: ScalingMetric| keda::MetricValue {
            metric_name: metric.name().to_owned(),
            metric_value: rounded_up(metric.of(load)),
            metric_value_float: metric.of(load),
        };
        keda::GetMetricsResponse { metric_values: asked.into_iter().map(value).collect() }
    })
}

/// Both kinds of numbers are bounded far below where this would lose anything.
#[allow(clippy::cast_possible_truncation)]
fn rounded_up(number: f64) -> i64 {
    number.ceil() as i64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sent(entries: &[(&str, &str)]) -> keda::ScaledObjectRef {
        let scaler_metadata = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        keda::ScaledObjectRef { name: "workers".to_owned(), namespace: "shop".to_owned(), scaler_metadata }
    }

    fn refused(entries: &[(&str, &str)]) -> Vec<String> {
        let failure = scaling(&sent(entries)).expect_err("refused");
        failure.invalid.into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn metadata_is_read_with_kedas_own_keys_passed_over() {
        let read = scaling(&sent(&[
            ("scalerAddress", "leasehold:7070"),
            ("queue", "mail"),
            ("targetReady", "2.5"),
            ("targetAgeSecondsFromEnv", "30"),
            ("activationReady", "7"),
        ]))
        .expect("fine");
        assert_eq!(read.queue.as_str(), "mail");
        assert_eq!(read.targets, [(ScalingMetric::Ready, 2.5), (ScalingMetric::Oldest, 30.0)]);
        assert_eq!(read.activation_ready, 7);
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        assert_eq!(refused(&[]), ["scalerMetadata.queue", "scalerMetadata"]);
        assert_eq!(
            refused(&[("queue", "No"), ("targetready", "5"), ("targetReady", "0"), ("activationReady", "-1")]),
            [
                "scalerMetadata.targetready",
                "scalerMetadata.queue",
                "scalerMetadata.targetReady",
                "scalerMetadata.activationReady"
            ]
        );
        for bad in ["", "x", "NaN", "inf", "-1", "1e10", "5 jobs"] {
            assert_eq!(refused(&[("queue", "q"), ("targetAgeSeconds", bad)]), ["scalerMetadata.targetAgeSeconds"]);
        }
        let twice = [("queue", "q"), ("targetReady", "5"), ("targetReadyFromEnv", "5")];
        assert_eq!(refused(&twice), ["scalerMetadata.targetReadyFromEnv"]);
    }

    #[test]
    fn a_long_key_is_cut_where_it_is_shown() {
        let long = "é".repeat(1_000);
        let [field] = &refused(&[("queue", "q"), ("targetReady", "1"), (long.as_str(), "x")])[..] else {
            panic!("one fault")
        };
        assert_eq!(field.len(), "scalerMetadata.".len() + KEY_SHOWN);
    }

    #[test]
    fn values_are_those_asked_for_and_rounded_up_for_old_readers() {
        let read = scaling(&sent(&[("queue", "q"), ("targetReady", "1"), ("targetAgeSeconds", "1.5")])).expect("fine");
        let load = QueueLoad { ready: 3, leased: 1, oldest: Duration::from_millis(2_500) };
        let both = metric_values(&read, "").expect("all")(&load).metric_values;
        let shown: Vec<_> = both.iter().map(|one| (one.metric_value, one.metric_value_float)).collect();
        assert_eq!(shown, [(3, 3.0), (3, 2.5)]);
        assert_eq!(metric_specs(&read).metric_specs[1].target_size, 2);
        let one = metric_values(&read, "leasehold-ready-jobs").expect("known")(&load).metric_values;
        assert_eq!(one.len(), 1);
        assert!(metric_values(&read, "s0-leasehold-ready-jobs").is_err());
    }
}
