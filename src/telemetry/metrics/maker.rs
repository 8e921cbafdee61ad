//! Instruments, from their declarations.

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use crate::telemetry::names::{Instrument, Kind};

/// Says a value under its attributes.
pub(in crate::telemetry) type Say<'a> = &'a dyn Fn(f64, &[KeyValue]);

/// Makes them.
pub(in crate::telemetry) struct Maker {
    meter: Meter,
}

impl Maker {
    pub(super) fn new(meter: Meter) -> Self {
        Self { meter }
    }

    /// A distribution.
    pub(super) fn histogram(&self, declared: &Instrument) -> Histogram<f64> {
        let Kind::Histogram(bounds) = declared.kind else { panic!("{} is declared as no histogram", declared.name) };
        let histogram = self.meter.f64_histogram(declared.name).with_boundaries(bounds.to_vec());
        histogram.with_unit(declared.unit).with_description(declared.about).build()
    }

    /// A count.
    pub(super) fn counter(&self, declared: &Instrument) -> Counter<u64> {
        debug_assert_eq!(declared.kind, Kind::Counter, "{}", declared.name);
        self.meter.u64_counter(declared.name).with_unit(declared.unit).with_description(declared.about).build()
    }

    /// A sum of seconds.
    pub(super) fn seconds(&self, declared: &Instrument) -> Counter<f64> {
        debug_assert_eq!(declared.kind, Kind::Counter, "{}", declared.name);
        self.meter.f64_counter(declared.name).with_unit(declared.unit).with_description(declared.about).build()
    }

    /// What `read` says whenever somebody asks. No set of attributes may be said twice.
    pub(in crate::telemetry) fn observed(&self, declared: &Instrument, read: impl Fn(Say<'_>) + Send + Sync + 'static) {
        let (name, unit, about) = (declared.name, declared.unit, declared.about);
        match declared.kind {
            Kind::Counter => drop(
                self.meter
                    .f64_observable_counter(name)
                    .with_unit(unit)
                    .with_description(about)
                    .with_callback(move |to| read(&|value, labels| to.observe(value, labels)))
                    .build(),
            ),
            Kind::UpDownCounter => drop(
                self.meter
                    .f64_observable_up_down_counter(name)
                    .with_unit(unit)
                    .with_description(about)
                    .with_callback(move |to| read(&|value, labels| to.observe(value, labels)))
                    .build(),
            ),
            Kind::Gauge => drop(
                self.meter
                    .f64_observable_gauge(name)
                    .with_unit(unit)
                    .with_description(about)
                    .with_callback(move |to| read(&|value, labels| to.observe(value, labels)))
                    .build(),
            ),
            Kind::Histogram(_) => panic!("{name} is declared as a histogram, which nobody can read"),
        }
    }
}
