//! What is not a gRPC call at all.

use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use tonic::body::Body;

use super::RequestId;
use crate::{
    grpc::status,
    model::{Failure, Reason},
};

/// The refusal of a request that is no gRPC call with protobuf messages. It says so in HTTP's terms and in gRPC's.
pub(super) fn refused(request: &Request<Body>, id: RequestId) -> Option<Response<Body>> {
    let sent = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let (code, message) = match sent.strip_prefix(b"application/grpc") {
        _ if request.method() != Method::POST => (StatusCode::METHOD_NOT_ALLOWED, "gRPC calls are POST requests"),
        None => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/grpc"),
        Some(b"" | b"+proto") => return None,
        Some(rest) if rest.starts_with(b";") || rest.starts_with(b"+proto;") => return None,
        Some(_) => (StatusCode::OK, "the only encoding of messages is proto"),
    };
    let mut answer = status::of(&Failure::not_applied(Reason::Unimplemented, message), id, None).into_http::<Body>();
    *answer.status_mut() = code;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: Method, content_type: Option<&str>) -> Option<StatusCode> {
        let mut request = Request::builder().method(method);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request.body(Body::empty()).expect("a request");
        refused(&request, RequestId::draw()).map(|answer| answer.status())
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
