//! One unary call, from what the layers found out about it to its answer.

use tonic::{Request, Response, Status};

use super::{layers::CallScope, status};
use crate::{model::Failure, store::Call};

/// What the layers found out about the call.
pub(super) fn scope<T>(request: &Request<T>) -> CallScope {
    request.extensions().get::<CallScope>().expect("the layers stand before every service").clone()
}

/// One unary call: what it runs for, and how its failures are told.
pub(super) struct Unary(CallScope);

impl Unary {
    pub(super) fn of<T>(request: &Request<T>) -> (Self, Call) {
        let scope = scope(request);
        let call = Call { caller: scope.caller.clone(), deadline: scope.deadline };
        (Self(scope), call)
    }

    pub(super) fn answer<T>(&self, answer: Result<T, Failure>) -> Result<Response<T>, Status> {
        answer.map(Response::new).map_err(|failure| status::of(&failure, self.0.id, Some(self.0.deadline)))
    }
}
