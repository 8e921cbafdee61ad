//! The methods there are.

/// A method that is served, or any other one. What a client sends as a path never becomes a label as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method(usize);

/// Paths without their slash, those of our own service first.
const NAMES: [&str; 44] = [
    "leasehold.v1.QueueService/Enqueue",
    "leasehold.v1.QueueService/Lease",
    "leasehold.v1.QueueService/Ack",
    "leasehold.v1.QueueService/Nack",
    "leasehold.v1.QueueService/Extend",
    "leasehold.v1.QueueAdminService/GetBrokerInfo",
    "leasehold.v1.QueueAdminService/ListQueues",
    "leasehold.v1.QueueAdminService/GetQueue",
    "leasehold.v1.QueueAdminService/UpdateQueue",
    "leasehold.v1.QueueAdminService/PurgeQueue",
    "leasehold.v1.QueueAdminService/DeleteQueue",
    "leasehold.v1.QueueAdminService/GetJob",
    "leasehold.v1.QueueAdminService/ListJobs",
    "leasehold.v1.QueueAdminService/ExplainJob",
    "leasehold.v1.QueueAdminService/CancelJob",
    "leasehold.v1.QueueAdminService/RunJobNow",
    "leasehold.v1.QueueAdminService/ListDeadJobs",
    "leasehold.v1.QueueAdminService/RedriveDeadJobs",
    "leasehold.v1.QueueAdminService/ListConsumers",
    "leasehold.v1.ConnectionService/ListCallers",
    "leasehold.v1.ConnectionService/WatchCallers",
    "leasehold.v1.ConnectionService/ListDatabaseSessions",
    "leasehold.v1.ConnectionService/GetVacuumHorizon",
    "leasehold.v1.ConnectionService/SetCallerBudget",
    "externalscaler.ExternalScaler/IsActive",
    "externalscaler.ExternalScaler/StreamIsActive",
    "externalscaler.ExternalScaler/GetMetricSpec",
    "externalscaler.ExternalScaler/GetMetrics",
    "externalscaler.ExternalScaler/StreamMetricSpec",
    "leasehold.v1.ReservationService/AdjustStock",
    "leasehold.v1.ReservationService/GetStock",
    "leasehold.v1.ReservationService/Reserve",
    "leasehold.v1.ReservationService/CommitReservation",
    "leasehold.v1.ReservationService/ReleaseReservation",
    "leasehold.v1.ReservationService/ExtendReservation",
    "leasehold.v1.ReservationService/GetReservation",
    "leasehold.v1.StockAdminService/VerifyStock",
    "leasehold.v1.StockAdminService/ListLedger",
    "leasehold.v1.StockAdminService/SetStockSwitch",
    "leasehold.v1.StockAdminService/ListStockSwitches",
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
const OURS: usize = 40;
/// As OpenTelemetry names what is not in the set.
const OTHER: &str = "_OTHER";

impl Method {
    /// The method at `path`.
    pub(super) fn at(path: &str) -> Self {
        let name = path.strip_prefix('/').unwrap_or_default();
        Self(NAMES.iter().position(|&known| known == name).unwrap_or(NAMES.len()))
    }

    /// Its name, from a fixed set.
    pub(super) fn name(self) -> &'static str {
        NAMES.get(self.0).copied().unwrap_or(OTHER)
    }

    /// Whether its streams end when somebody wants them to, and not when something is done.
    pub(super) fn is_open_ended(self) -> bool {
        const OPEN_ENDED: [&str; 7] = [
            "leasehold.v1.QueueService/Lease",
            "leasehold.v1.ConnectionService/WatchCallers",
            "externalscaler.ExternalScaler/StreamIsActive",
            "externalscaler.ExternalScaler/StreamMetricSpec",
            "grpc.health.v1.Health/Watch",
            "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        ];
        OPEN_ENDED.contains(&self.name())
    }

    /// Whether it is one of a service of ours, whose streams drain by themselves.
    pub(super) fn is_ours(self) -> bool {
        self.0 < OURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_contract_is_known_as_ours() {
        use prost::Message;
        let set = prost_types::FileDescriptorSet::decode(crate::v1::FILE_DESCRIPTOR_SET).expect("compiled in");
        let mut count = 0;
        for file in set.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    assert!(Method::at(&path).is_ours(), "{path}");
                    count += 1;
                }
            }
        }
        assert_eq!(count, OURS);
    }

    #[test]
    fn what_a_client_makes_up_has_one_name() {
        for path in ["", "/", "/a/b", "leasehold.v1.QueueService/Ack", "/leasehold.v1.QueueService/Ack/", "/_OTHER"] {
            assert_eq!(Method::at(path).name(), "_OTHER", "{path}");
            assert!(!Method::at(path).is_ours());
        }
        assert_eq!(Method::at("/grpc.health.v1.Health/Watch").name(), "grpc.health.v1.Health/Watch");
    }
}
