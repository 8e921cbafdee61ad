//! Queues as operators see and steer them.

use tonic::Request;

use super::{
    AdminApi, Frames,
    deletion::DeleteSteps,
    purge::{PurgeSteps, counted},
};
use crate::{
    grpc::{audit::Audit, convert, steps},
    model::{Failure, QueueName, Reason},
    store::{Call, Deletion, Purge, engine::QueueRow},
    v1,
};

impl AdminApi {
    pub(super) async fn do_list_queues(
        &self,
        call: &Call,
        request: &v1::ListQueuesRequest,
    ) -> Result<v1::ListQueuesResponse, Failure> {
        let page = convert::queues_page(request)?;
        let rows = self.store.list_queues(call, &page.prefix, &page.after, page.size).await?;
        let next_page_token = match rows.last() {
            Some(last) if rows.len() == page.size => convert::next_queues(&page.prefix, last.name.as_str()),
            _ => String::new(),
        };
        let mut queues: Vec<v1::Queue> = rows.iter().map(convert::queue).collect();
        if request.include_counts {
            for (queue, counts) in queues.iter_mut().zip(self.counts(call, &rows).await?) {
                queue.counts = Some(counts);
            }
        }
        Ok(v1::ListQueuesResponse { queues, next_page_token })
    }

    pub(super) async fn do_get_queue(
        &self,
        call: &Call,
        request: &v1::GetQueueRequest,
    ) -> Result<v1::GetQueueResponse, Failure> {
        let name = QueueName::parse("queue", &request.queue)?;
        let row = self.existing(call, &name).await?;
        let mut queue = convert::queue(&row);
        queue.counts = self.counts(call, std::slice::from_ref(&row)).await?.pop();
        Ok(v1::GetQueueResponse { queue: Some(queue) })
    }

    pub(super) async fn do_update_queue(
        &self,
        call: &Call,
        request: &Request<v1::UpdateQueueRequest>,
    ) -> Result<v1::UpdateQueueResponse, Failure> {
        let audit = Audit::of("QueueAdminService/UpdateQueue", request);
        let request = request.get_ref();
        let update = match convert::queue_update(request, &self.facts.limits) {
            Ok(update) => update,
            Err(refused) => {
                return audit.about(format_args!("queue={}", request.queue)).end(Err(refused), |_| String::new());
            }
        };
        let audit = audit.about(&update);
        let defaults = self.store.default_settings();
        let changed =
            self.store.change_queue(call, &update.queue, update.create, |now| update.apply(now, defaults)).await;
        let (row, created) = audit.end(changed, |(_, created)| format!("created={created}"))?;
        self.dispatch.changed(row.clone());
        Ok(v1::UpdateQueueResponse { queue: Some(convert::queue(&row)), created })
    }

    pub(super) async fn do_purge_queue(
        &self,
        call: &Call,
        request: &Request<v1::PurgeQueueRequest>,
    ) -> Result<Frames<v1::PurgeQueueResponse>, Failure> {
        let sent = request.get_ref();
        let audit = (!sent.dry_run).then(|| {
            let states: Vec<&str> = sent.states().map(|state| state.as_str_name()).take(10).collect();
            let limit = sent.limit;
            Audit::of("QueueAdminService/PurgeQueue", request)
                .about(format_args!("queue={} states={states:?} limit={limit}", sent.queue))
        });
        match self.purge(call, sent).await {
            Ok(purge) if sent.dry_run => {
                let count = self.store.count_purgeable(call, &purge).await?;
                Ok(Box::pin(counted(count)))
            }
            Ok(purge) => {
                let steps = PurgeSteps::new(self.store.clone(), self.dispatch.clone(), purge);
                Ok(Box::pin(steps::run(steps, request, audit)))
            }
            Err(failure) => {
                if let Some(audit) = audit {
                    audit.failed(&failure, "");
                }
                Err(failure)
            }
        }
    }

    async fn purge(&self, call: &Call, sent: &v1::PurgeQueueRequest) -> Result<Purge, Failure> {
        let spec = convert::purge_spec(sent)?;
        let row = self.existing(call, &spec.queue).await?;
        Ok(Purge::new(row.id, &spec.states, spec.before, spec.limit))
    }

    pub(super) async fn do_delete_queue(
        &self,
        call: &Call,
        request: &Request<v1::DeleteQueueRequest>,
    ) -> Result<Frames<v1::DeleteQueueResponse>, Failure> {
        let sent = request.get_ref();
        let audit = Audit::of("QueueAdminService/DeleteQueue", request)
            .about(format_args!("queue={} purge={}", sent.queue, sent.purge));
        match self.deletion(call, sent).await {
            Ok((name, deletion)) => {
                let steps = DeleteSteps::new(self.store.clone(), self.dispatch.clone(), name, deletion);
                Ok(Box::pin(steps::run(steps, request, Some(audit))))
            }
            Err(failure) => {
                audit.failed(&failure, "");
                Err(failure)
            }
        }
    }

    async fn deletion(&self, call: &Call, sent: &v1::DeleteQueueRequest) -> Result<(QueueName, Deletion), Failure> {
        let name = QueueName::parse("queue", &sent.queue)?;
        let row = self.existing(call, &name).await?;
        Ok((name.clone(), Deletion::new(name, row.id, sent.purge)))
    }

    /// The queue, or that there is none.
    pub(super) async fn existing(&self, call: &Call, name: &QueueName) -> Result<QueueRow, Failure> {
        self.store.queue_now(call, name).await?.ok_or_else(|| {
            let message = format!("there is no queue '{name}'; ListQueues says which there are");
            Failure::not_applied(Reason::NotFound, message).about(name.as_str())
        })
    }

    /// What is in each queue, and what replicas say of it.
    async fn counts(&self, call: &Call, rows: &[QueueRow]) -> Result<Vec<v1::QueueCounts>, Failure> {
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        let counts = self.store.view_jobs(call, &ids).await?;
        let names = rows.iter().map(|row| row.name.clone()).collect();
        let attendance = self.store.attendance(call, names).await?;
        Ok(counts.iter().zip(&attendance).map(|(counts, said)| convert::queue_counts(counts, said)).collect())
    }
}
