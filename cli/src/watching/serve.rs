//! Metrics by HTTP, as long as something is recorded.

use super::{Picture, Watching};
use crate::output;
use anyhow::{Context, Result, anyhow};
use ompfuse_export::openmetrics::{CONTENT_TYPE, text};
use std::net::SocketAddr;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// The only thing that is served.
const PATH: &str = "/metrics";

/// Answers at this address and no other. The last picture, since the begin, and why it is the last one.
pub(crate) fn serve(
    mut watching: Watching,
    address: SocketAddr,
    interval: Duration,
) -> Result<(Picture, String)> {
    let server = Server::http(address)
        .map_err(|error| anyhow!("cannot serve metrics at {address}: {error}"))?;
    let bound = server.server_addr();
    output::remark(format_args!(
        "serving http://{bound}{PATH} until the recording ends"
    ));
    loop {
        let request = server.recv_timeout(interval);
        let request = request.with_context(|| format!("cannot serve metrics at {bound}"))?;
        let looked = watching.look();
        if looked.is_err() {
            watching.look_back();
        }
        if let Some(request) = request {
            answer(request, &watching);
        }
        if let Err(ended) = looked {
            return Ok((watching.picture(None), format!("{ended:#}")));
        }
    }
}

/// Whoever has asked may be gone by now, which is nobody else's concern.
fn answer(request: Request, watching: &Watching) {
    let path = request.url().split('?').next().unwrap_or_default();
    let _ = match (path, request.method()) {
        (PATH, Method::Get | Method::Head) => match text(watching.metrics()) {
            Ok(text) => {
                let kind = Header::from_bytes("Content-Type", CONTENT_TYPE);
                let response = Response::from_string(text);
                request.respond(match kind {
                    Ok(kind) => response.with_header(kind),
                    Err(()) => response,
                })
            }
            Err(error) => request.respond(plain(&error.to_string(), 500)),
        },
        (PATH, _) => request.respond(plain("GET is all that is understood\n", 405)),
        _ => request.respond(plain("metrics are at /metrics\n", 404)),
    };
}

fn plain(text: &str, status: u16) -> Response<std::io::Cursor<Vec<u8>>> {
    Response::from_string(text).with_status_code(status)
}
