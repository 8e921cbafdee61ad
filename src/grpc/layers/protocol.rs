//! What is not a gRPC call at all.

use http::{HeaderValue, Method, Request, StatusCode, header::CONTENT_TYPE};

use crate::model::{Failure, Reason};

/// A call that is not let in: why, and how HTTP puts it.
pub(super) struct Refused {
    /// For clients that speak no gRPC.
    pub(super) http: StatusCode,
    /// For those that do.
    pub(super) failure: Box<Failure>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { http: StatusCode::OK, failure: Box::new(failure) }
    }
}

/// Refuses what is no gRPC call with protobuf messages.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), Refused> {
    let sent = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let (http, why) = match sent.strip_prefix(b"application/grpc") {
        _ if request.method() != Method::POST => (StatusCode::METHOD_NOT_ALLOWED, "gRPC calls are POST requests"),
        None => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/grpc"),
        Some(b"" | b"+proto") => return Ok(()),
        Some(rest) if rest.starts_with(b";") || rest.starts_with(b"+proto;") => return Ok(()),
        Some(_) => (StatusCode::OK, "the only encoding of messages is proto"),
    };
    Err(Refused { http, failure: Box::new(Failure::not_applied(Reason::Unimplemented, why)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: Method, content_type: Option<&str>) -> Option<StatusCode> {
        let mut request = Request::builder().method(method);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request.body(()).expect("a request");
        check(&request).err().map(|refused| refused.http)
    }

    #[test]
    fn grpc_in_all_its_spellings_passes() {
        for fine in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;charset=utf-8",
            "application/grpc+proto; x=y",
        ] {
            assert_eq!(status(Method::POST, Some(fine)), None, "{fine}");
        }
    }

    #[test]
    fn other_protocols_are_refused_and_never_tried() {
        assert_eq!(status(Method::GET, Some("application/grpc")), Some(StatusCode::METHOD_NOT_ALLOWED));
        for foreign in [None, Some("application/json"), Some("text/html"), Some("")] {
            assert_eq!(status(Method::POST, foreign), Some(StatusCode::UNSUPPORTED_MEDIA_TYPE), "{foreign:?}");
        }
        for encoding in ["application/grpc+json", "application/grpc-web", "application/grpc+protobuf"] {
            assert_eq!(status(Method::POST, Some(encoding)), Some(StatusCode::OK), "{encoding}");
        }
    }
}
