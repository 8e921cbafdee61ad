//! Failures that the framework makes by itself, made again with reason and outcome.

use http::Response;
use tonic::{Code, Status, body::Body};

use super::RequestId;
use crate::{
    grpc::status::{self, OUTCOME},
    model::{Failure, Invalid, Reason},
};

const ACCEPTS: &str = "grpc-accept-encoding";
const DECODING: &str = "failed to decode Protobuf message: ";

/// `answer`, or where it is a failure without an outcome, the same failure with one. None of those ever reached a handler
/// of ours, so nothing happened.
pub(super) fn with_outcome(answer: Response<Body>, id: RequestId) -> Response<Body> {
    if answer.headers().contains_key(OUTCOME) {
        return answer;
    }
    let Some(failed) = Status::from_header_map(answer.headers()).filter(|status| status.code() != Code::Ok) else {
        return answer;
    };
    let mut again = status::of(&failure(&failed), id, None).into_http();
    if let Some(accepts) = answer.headers().get(ACCEPTS) {
        again.headers_mut().insert(ACCEPTS, accepts.clone());
    }
    again
}

fn failure(status: &Status) -> Failure {
    let reason = match status.code() {
        Code::Unimplemented => Reason::Unimplemented,
        Code::NotFound => Reason::NotFound,
        Code::DeadlineExceeded => Reason::Deadline,
        Code::Unavailable => Reason::Overloaded,
        // A message that is too long, broken off, compressed or no message at all.
        _ => return undecodable(status.message()).into(),
    };
    Failure::not_applied(reason, status.message())
}

/// What is wrong with a message, from the decoder's words: `NewJob.queue: EnqueueRequest.jobs: invalid string value` is
/// `jobs.queue: invalid string value`.
fn undecodable(text: &str) -> Invalid {
    let mut rest = text.strip_prefix(DECODING).unwrap_or(text);
    let mut path = Vec::new();
    while let Some((place, further)) = rest.split_once(": ") {
        let Some((_, field)) = place.split_once('.').filter(|_| !place.contains(' ')) else {
            break;
        };
        path.push(field);
        rest = further;
    }
    if path.is_empty() {
        return Invalid::new("request", rest);
    }
    path.reverse();
    Invalid::new(path.join("."), rest)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::{model::Outcome, v1};

    #[test]
    fn the_decoders_words_become_the_path_of_a_field() {
        let mut job = Vec::new();
        prost::encoding::bytes::encode(1, &vec![0xff], &mut job);
        let mut request = Vec::new();
        prost::encoding::bytes::encode(1, &job, &mut request);
        let error = v1::EnqueueRequest::decode(request.as_slice()).expect_err("no UTF-8");
        let fault = undecodable(&error.to_string());
        assert_eq!(fault, Invalid::new("jobs.queue", "invalid string value: data is not UTF-8 encoded"));
    }

    #[test]
    fn other_words_are_about_the_request() {
        for text in
            ["Missing request message.", "decoded message length too large: found 5 bytes, the limit is: 4 bytes"]
        {
            assert_eq!(undecodable(text), Invalid::new("request", text));
        }
    }

    #[test]
    fn nothing_that_the_framework_refuses_has_happened() {
        for code in 1..=16 {
            let failure = failure(&Status::new(Code::from_i32(code), "why"));
            assert_eq!(failure.outcome, Outcome::NotApplied);
        }
    }
}
